#!/bin/bash
# What `cohort bench` shows of a result: a row's ratio follows from its own times, in tables and on the page.
. "$(dirname "$0")/common.sh"
recorded=$(dirname "$0")/bench_report.json

# The recorded report has rows whose ratio, as it was measured, contradicts their times.
grep -qE '"fraction": 1\.03' "$recorded" || fail "the recorded report has lost its contradictory row"
run 0 bench --from "$recorded" --csv
awk -F, 'function quotient(a, b) { return b > 0 ? a / b : 0 }
    function differs(a, b) { return a > b * 1.1 || a < b / 1.1 }
    {
        # Names are quoted and have commas in them: the numbers are counted from the end.
        point = $1 "," $2 "," $3 "," $4 "," $5 "," $6 "," $7; who = $8
        time = $(NF - 5); fraction = $(NF - 2); ratio = $(NF - 1)
    }
    NR == 1 || who == "worst" { next }
    who == "cohort" { ours = time; rows++; next }
    who == "limit" && differs(fraction, quotient(time, ours)) { print "limit: " $0; bad++ }
    who != "limit" && differs(ratio, quotient(ours, time)) { print "peer: " $0; bad++ }
    END { if (rows < 10) { print "only " rows + 0 " rows"; bad++ } exit bad > 0 }' "$folder/out" >"$folder/err" \
    || fail "a row contradicts itself"

run 0 bench --from "$recorded"
grep -qE '2\.70 us .* 560 ns .* 0\.21' "$folder/out" || fail "the row of 2.70 us is not at 0.21 of 560 ns"
run 0 bench --from "$recorded" --json
says out '"paired_fraction": 1.03'
cp "$folder/out" "$folder/again.json"
run 0 bench --from "$folder/again.json" --json
cmp -s "$folder/out" "$folder/again.json" || fail "a report that is reported again changes"

# The page has the same figures, and is drawn from them alone.
run 0 bench --from "$recorded" --html "$folder/page.html"
says page.html '"paired_fraction":1.03'
says page.html 'At a glance'
grep -qE '@REPORT@' "$folder/page.html" && fail "the page has no report in it"

# Drawn by a browser, where there is one: every row, as text.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -n "$browser" ] && command -v python3 >/dev/null; then
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$folder/browser" --dump-dom \
        "file://$folder/page.html" >"$folder/dom.html" 2>/dev/null || fail "the browser did not draw the page"
    python3 - "$folder/dom.html" >"$folder/err" <<'PY' || fail "the page as drawn"
import html.parser, re, sys

UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}

class Tables(html.parser.HTMLParser):
    """Each table as a list of rows of texts, with its class."""
    def __init__(self):
        super().__init__()
        self.tables, self.cell, self.text = [], None, ""
    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.tables.append((dict(attributes).get("class", ""), []))
        elif tag == "tr" and self.tables:
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.cell = []
    def handle_data(self, data):
        self.text += data
        if self.cell is not None:
            self.cell.append(data)
    def handle_endtag(self, tag):
        if tag in ("td", "th") and self.cell is not None:
            self.tables[-1][1][-1].append("".join(self.cell))
            self.cell = None

def time(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]

page = Tables()
page.feed(open(sys.argv[1], encoding="utf-8").read())
rows = 0
for kind, table in page.tables:
    if kind == "heat":
        continue
    titles = table[0]
    ours, limit, fraction = (titles.index(title) for title in ("cohort", "limit", "of limit"))
    for row in table[1:]:
        rows += 1
        quotient = time(row[limit]) / time(row[ours])
        # Two digits of a small ratio are not enough for a tenth.
        if abs(float(row[fraction]) - quotient) > 0.1 * quotient + 0.006:
            sys.exit(f"the row contradicts itself: {row}")
        if re.search(r"(^|, )(late|later|pause|spin|yield)\b| nt\b", row[-1]):
            sys.exit(f"a name is not in words: {row[-1]}")
heat = [table for kind, table in page.tables if kind == "heat"]
if len(heat) != 1 or len(heat[0]) < 4:
    sys.exit("there is no table of benchmarks and sizes")
if rows < 10:
    sys.exit(f"only {rows} rows")
for word in ("oshmem, 2 ranks", "not measured: it has none of the benchmarks that were run", "GB/s", "time of a call"):
    if word not in page.text:
        sys.exit(f"'{word}' is not on the page")
PY
fi

run 1 bench --from "$folder/nowhere.json"
says err "nowhere.json"
echo '{"results": 3}' >"$folder/other.json"
run 1 bench --from "$folder/other.json"
says err "it is not what cohort bench --json prints"
run 2 bench all_reduce --from "$recorded"
says err "--from measures nothing"
echo "bench page: passed"
