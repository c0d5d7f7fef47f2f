# What a clone holds as git would take it in, one entry a file.
fill_index "$base"
g ls-files --stage -z >"$out/list" || exit 2
