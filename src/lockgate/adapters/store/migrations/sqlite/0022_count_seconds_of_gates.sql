-- How long gates take is counted by day too, so that the days are counted again from the first event.

DELETE FROM stats_daily;
UPDATE stats_head SET seq = 0;
