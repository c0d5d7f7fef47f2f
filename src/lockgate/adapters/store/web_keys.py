"""Links, logins and tokens of the web board, in the same database as the tasks."""

from lockgate.adapters.store.database import Database, Run
from lockgate.adapters.store.json_forms import Fields, Row
from lockgate.adapters.store.rows import Values, storable
from lockgate.ports.keys import Key, KeyKind

ADD = """
INSERT INTO web_keys (hash, kind, person, name, read_only, made, expires)
VALUES (:hash, :kind, :person, :name, :read_only, :made, :expires)
"""
FORGET = "DELETE FROM web_keys WHERE expires > 0 AND expires <= :now"
FIND = """
SELECT * FROM web_keys
WHERE hash = :hash AND kind = :kind AND (expires = 0 OR expires > :now)
"""
TAKE = """
DELETE FROM web_keys
WHERE hash = :hash AND kind = :kind AND (expires = 0 OR expires > :now) RETURNING *
"""
ALL = """
SELECT * FROM web_keys WHERE kind = :kind AND (expires = 0 OR expires > :now) ORDER BY made, hash
"""
DROP = "DELETE FROM web_keys WHERE hash = :hash"
DROP_ALL = "DELETE FROM web_keys WHERE person = :person"


class SqlWebKeys:
    """The `WebKeys` of ports. Each method that writes is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, key: Key, now: float) -> None:
        row: Values = storable(
            {
                "hash": key.hash,
                "kind": key.kind,
                "person": key.person,
                "name": key.name,
                "read_only": int(key.read_only),
                "made": key.made,
                "expires": key.expires,
            }
        )

        def work(run: Run) -> None:
            run(FORGET, {"now": now})
            run(ADD, row)

        self._database.write(work)

    def find(self, hash: str, kind: KeyKind, now: float) -> Key | None:
        found = self._database.read(FIND, {"hash": hash, "kind": kind, "now": now})
        return _key(found[0]) if found else None

    def take(self, hash: str, kind: KeyKind, now: float) -> Key | None:
        taken = list[Row]()

        def work(run: Run) -> None:
            row = run(TAKE, {"hash": hash, "kind": kind, "now": now}).fetchone()
            taken[:] = [row] if row is not None else []

        self._database.write(work)
        return _key(taken[0]) if taken else None

    def all(self, kind: KeyKind, now: float) -> tuple[Key, ...]:
        return tuple(_key(row) for row in self._database.read(ALL, {"kind": kind, "now": now}))

    def drop(self, hash: str) -> None:
        def work(run: Run) -> None:
            run(DROP, {"hash": hash})

        self._database.write(work)

    def drop_all_of(self, person: str) -> None:
        def work(run: Run) -> None:
            run(DROP_ALL, storable({"person": person}))

        self._database.write(work)


def _key(row: Row) -> Key:
    it = Fields("a login of the web board", row)
    return Key(
        hash=it.text("hash"),
        kind=it.choice("kind", KeyKind),
        person=it.text("person"),
        name=it.text("name"),
        read_only=bool(it.whole("read_only")),
        made=it.real("made"),
        expires=it.real("expires"),
    )
