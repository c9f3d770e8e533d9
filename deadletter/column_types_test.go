package deadletter_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// stored is a value that a queue may hold, and what a redrive makes of it.
type stored struct {
	typ       string // of the column, and what else stands behind its name
	value     string // SQL
	asJSONB   string // what comes back from a letter of the type jsonb; empty: the same
	asText    string // what comes back from one of the type json or text; empty: the same
	extension string // that has the type
	since     int    // the first server_version_num that knows it; 0: each
}

const null = "NULL" // for NULL

const types = `
create type mood as enum ('good', 'it''s bad', '"q"', '');
create type pair as (a int, "b c" text);
create type papers as (n int, j json, b jsonb, list int[]);
create type nested as (p pair, w papers, ps pair[]);
create type span as range (subtype = float8);
create type words as range (subtype = text);
create domain positive as int check (value > 0);
create domain small as positive check (value < 100);
create domain short as varchar(9) check (value <> 'no');
create domain document as jsonb check (jsonb_typeof(value) in ('object', 'null'));
create domain filled as document not null default '{}';
create domain paper as json;
create domain list as int[] check (array_length(value, 1) > 0);
create domain pairs as pair check ((value).a > 0);
create domain question as tsquery;`

// values are of all types that PostgreSQL comes with.
func values() map[string]stored {
	return map[string]stored{
		"boolean":                   {typ: "boolean", value: `true`},
		"smallint":                  {typ: "smallint", value: `-32768`},
		"bigint":                    {typ: "bigint", value: `9223372036854775807`},
		"numeric NaN":               {typ: "numeric", value: `'NaN'`},
		"numeric infinity":          {typ: "numeric", value: `'-Infinity'`, since: 140000},
		"numeric tiny":              {typ: "numeric", value: `1e-300`},
		"numeric huge":              {typ: "numeric", value: `1e10000`},
		"numeric scale":             {typ: "numeric", value: `1.10000`},
		"numeric rounded":           {typ: "numeric(5,-2)", value: `12345`, since: 150000},
		"real largest":              {typ: "real", value: `'3.4028235e38'`},
		"real least":                {typ: "real", value: `'1e-45'`},
		"double largest":            {typ: "double precision", value: `'1.7976931348623157e308'`},
		"double least":              {typ: "double precision", value: `'5e-324'`},
		"double NaN":                {typ: "double precision", value: `'NaN'`},
		"double infinity":           {typ: "double precision", value: `'-Infinity'`},
		"negative zero":             {typ: "double precision", value: `'-0'`, asJSONB: "0"},
		"money":                     {typ: "money", value: `'-92233720368547758.07'`},
		"text empty":                {typ: "text", value: `''`},
		"text odd":                  {typ: "text", value: `e' "\\u0000 \\\\u0000 \\ud800 \t\n\u2028\u0001\\'`},
		"text null":                 {typ: "text", value: `'null'`},
		"varchar":                   {typ: "varchar(3)", value: `'ab '`},
		"char(n)":                   {typ: "char(5)", value: `'ab'`},
		"char":                      {typ: `"char"`, value: `'\200'`},
		"name":                      {typ: "name", value: `'Foo'`},
		"bytea":                     {typ: "bytea", value: `'\x00ff'`},
		"bytea empty":               {typ: "bytea", value: `''`},
		"date infinity":             {typ: "date", value: `'infinity'`},
		"date BC":                   {typ: "date", value: `'0044-03-15 BC'`},
		"date last":                 {typ: "date", value: `'5874897-12-31'`},
		"time":                      {typ: "time", value: `'24:00:00'`},
		"timetz":                    {typ: "timetz", value: `'01:02:03.456789+05:45:30'`},
		"timetz late":               {typ: "timetz", value: `'24:00-15:59'`},
		"timestamp":                 {typ: "timestamp", value: `'294276-12-31 23:59:59.999999'`},
		"timestamptz BC":            {typ: "timestamptz", value: `'4713-01-01 BC'`},
		"timestamptz first":         {typ: "timestamptz", value: `'-infinity'`},
		"interval":                  {typ: "interval", value: `'1 mon -2 days 03:04:05.678'`},
		"interval long":             {typ: "interval", value: `'-178000000 years'`},
		"enum":                      {typ: "mood", value: `'it''s bad'`},
		"enum quoted":               {typ: "mood", value: `'"q"'`},
		"enum empty":                {typ: "mood", value: `''`},
		"enums":                     {typ: "mood[]", value: `array['', 'good']::mood[]`},
		"point":                     {typ: "point", value: `'(1.1,-2)'`},
		"line":                      {typ: "line", value: `'{1,2,3}'`},
		"lseg":                      {typ: "lseg", value: `'[(1,2),(3,4)]'`},
		"box":                       {typ: "box", value: `'(3,4),(1,2)'`},
		"boxes":                     {typ: "box[]", value: `'{(3,4),(1,2);(7,8),(5,6)}'`},
		"path closed":               {typ: "path", value: `'((1,2),(3,4))'`},
		"path open":                 {typ: "path", value: `'[(1,2)]'`},
		"polygon":                   {typ: "polygon", value: `'((1,2),(3,4))'`},
		"circle":                    {typ: "circle", value: `'<(1,2),3>'`},
		"cidr":                      {typ: "cidr", value: `'10.0.0.0/8'`},
		"inet":                      {typ: "inet", value: `'10.0.0.1/8'`},
		"macaddr":                   {typ: "macaddr", value: `'08:00:2b:01:02:03'`},
		"macaddr8":                  {typ: "macaddr8", value: `'08:00:2b:01:02:03:04:05'`},
		"bit":                       {typ: "bit(3)", value: `B'101'`},
		"bit varying":               {typ: "bit varying", value: `B''`},
		"tsvector":                  {typ: "tsvector", value: `'a:1A fat:2,4 ''it''''s'''`},
		"tsquery":                   {typ: "tsquery", value: `'fat & (rat | !cat:*A) <2> b'`},
		"uuid":                      {typ: "uuid", value: `gen_random_uuid()`},
		"xml":                       {typ: "xml", value: `'<a>x &amp; y</a>'`},
		"xml declared":              {typ: "xml", value: `xmlparse(document '<?xml version="1.0"?><a/>')`, asJSONB: "<a/>", asText: "<a/>"},
		"json":                      {typ: "json", value: `'{"b":  1, "a":[1.10, null], "b":2e3}'`, asJSONB: `{"a": [1.10, null], "b": 2000}`},
		"json scalar":               {typ: "json", value: `'"str"'`},
		"json null":                 {typ: "json", value: `'null'`, asJSONB: null, asText: null},
		"json null, not NULL":       {typ: "json not null default '1'", value: `'null'`},
		"json NUL":                  {typ: "json", value: `'{"a\u0000":["\\\u0000\\u0000\u0000", "\ud83d\ude00", "\n"]}'`, asJSONB: "-"},
		"json huge":                 {typ: "json", value: `'[1e200000, -0]'`, asJSONB: "-"},
		"jsonb":                     {typ: "jsonb", value: `'{"a": null, "b": [1.10, "x\\u0000"]}'`},
		"jsonb false":               {typ: "jsonb", value: `'false'`},
		"jsonb list":                {typ: "jsonb", value: `'[]'`},
		"jsonb null":                {typ: "jsonb", value: `'null'`, asJSONB: null, asText: null},
		"jsonb null, not NULL":      {typ: "jsonb not null default '{}'", value: `'null'`},
		"jsonb NULL":                {typ: "jsonb default '{}'", value: `null`},
		"jsonbs":                    {typ: "jsonb[]", value: `array['{}', '1', '"s"', null, '[1,2]', '[]']::jsonb[]`},
		"jsonbs of lists":           {typ: "jsonb[]", value: `array['[1, 2]', '[3]']::jsonb[]`},
		"jsonbs of null":            {typ: "jsonb[]", value: `array['null', '{}']::jsonb[]`, asJSONB: `{NULL,"{}"}`, asText: `{NULL,"{}"}`},
		"jsonbs, none":              {typ: "jsonb[]", value: `'{}'`},
		"jsonbs of two dimensions":  {typ: "jsonb[][]", value: `array[array['1', '2']]::jsonb[]`},
		"jsons":                     {typ: "json[]", value: `array['{"b":1}', '"s"']::json[]`, asJSONB: `{"{\"b\": 1}","\"s\""}`},
		"jsons NUL":                 {typ: "json[]", value: `array['"\u0000"']::json[]`, asJSONB: "-"},
		"jsonpath":                  {typ: "jsonpath", value: `'$."a"[*]?(@ > 1)'`},
		"texts":                     {typ: "text[]", value: `'{a,"b c",null,"{\"}","","null"}'`},
		"array of arrays":           {typ: "int[]", value: `'{{1,2},{3,4}}'`},
		"array empty":               {typ: "int[]", value: `'{}'`},
		"array with bounds":         {typ: "int[]", value: `'[0:1]={1,2}'`, asJSONB: "{1,2}", asText: "{1,2}"},
		"byteas":                    {typ: "bytea[]", value: `array['\x00', '']::bytea[]`},
		"records":                   {typ: "pair[]", value: `array[row(1, 'x'), row(null, null), null]::pair[]`},
		"record":                    {typ: "pair", value: `row(1, 'x, "y')`},
		"record of NULL":            {typ: "pair", value: `row(null, null)`},
		"record with json":          {typ: "papers", value: `row(1, '{"b": 1}', '{}', '{1}')`},
		"record with null":          {typ: "papers", value: `row(1, 'null', 'null', '{1}')`, asJSONB: "(1,,,{1})", asText: "(1,,,{1})"},
		"record of records":         {typ: "nested", value: `row(row(1, 'a'), row(2, '{}', '{}', '{1}'), array[row(1, 'z')::pair])`},
		"record default":            {typ: "pair default row(1, 'x')", value: `row(2, 'y')`},
		"domain of domain":          {typ: "small", value: `5`},
		"domain of text":            {typ: "short", value: `'123456789'`},
		"domain of jsonb":           {typ: "document", value: `'{"a": 1}'`},
		"domain of jsonb, not NULL": {typ: "filled", value: `'null'`},
		"domain of json":            {typ: "paper", value: `'{"a" :1}'`, asJSONB: `{"a": 1}`},
		"domain of array":           {typ: "list", value: `'{1}'`},
		"domain of record":          {typ: "pairs", value: `row(1, 'a')`},
		"domain of tsquery":         {typ: "question", value: `'a & b'`},
		"domains":                   {typ: "positive[]", value: `array[1, 2]::positive[]`},
		"domains of jsonb":          {typ: "document[]", value: `array['{}']::document[]`},
		"int4range":                 {typ: "int4range", value: `'[1,5)'`},
		"int4range empty":           {typ: "int4range", value: `'empty'`},
		"numrange":                  {typ: "numrange", value: `'(,1.10]'`},
		"tstzrange":                 {typ: "tstzrange", value: `'["2026-01-01 00:00:00+00",infinity)'`},
		"daterange":                 {typ: "daterange", value: `'(,)'`},
		"range of its own":          {typ: "span", value: `'[1e-300,Infinity)'`},
		"range of texts":            {typ: "words", value: `'["a,\"b",)'`},
		"multirange":                {typ: "int4multirange", value: `'{[1,2),[5,9)}'`, since: 140000},
		"ranges":                    {typ: "int4range[]", value: `array['[1,2)', 'empty']::int4range[]`},
		"oid":                       {typ: "oid", value: `4294967295`},
		"regclass":                  {typ: "regclass", value: `'pg_catalog.pg_class'`},
		"regclass of nothing":       {typ: "regclass", value: `999999999`},
		"regtype":                   {typ: "regtype", value: `'character varying'`},
		"regprocedure":              {typ: "regprocedure", value: `'now()'`},
		"regconfig":                 {typ: "regconfig", value: `'english'`},
		"pg_lsn":                    {typ: "pg_lsn", value: `'16/B374D848'`},
		"txid_snapshot":             {typ: "txid_snapshot", value: `'10:20:10,14,15'`},
		"pg_snapshot":               {typ: "pg_snapshot", value: `'10:20:10,14,15'`},
		"xid8":                      {typ: "xid8", value: `'5'`},
		"tid":                       {typ: "tid", value: `'(1,2)'`},
		"refcursor":                 {typ: "refcursor", value: `'c'`},

		"hstore":       {typ: "hstore", value: `'a=>true, b=>NULL, c=>"NULL", "c \\ d"=>"x\"y\n, 1.50"'`, extension: "hstore"},
		"hstore empty": {typ: "hstore not null default ''", value: `''`, extension: "hstore"},
		"hstores":      {typ: "hstore[]", value: `array['a=>1', null]::hstore[]`, extension: "hstore"},
		"citext":       {typ: "citext", value: `'MiXed'`, extension: "citext"},
		"ltree":        {typ: "ltree", value: `'a.b.c'`, extension: "ltree"},
		"lquery":       {typ: "lquery", value: `'*.a{1,2}'`, extension: "ltree"},
		"ltxtquery":    {typ: "ltxtquery", value: `'a & b*'`, extension: "ltree"},
		"cube":         {typ: "cube", value: `'(1.1,2),(3,4)'`, extension: "cube"},
		"seg":          {typ: "seg", value: `'1.5 .. 2.00'`, extension: "seg"},
		"isbn":         {typ: "isbn", value: `'978-0-393-04002-9'`, extension: "isn"},
		"query_int":    {typ: "query_int", value: `'1&(2|3)'`, extension: "intarray"},
		"lo":           {typ: "lo", value: `5`, extension: "lo"},
	}
}

// The letter is all that is left of a job whose queue row is gone. A type that
// does not come back, or comes back as something else, loses the job, or runs it
// on something else.
func TestEveryTypeComesBack(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ job string }{
		"from jsonb": {"jsonb"},
		"from json":  {"json"},
		"from text":  {"text"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			names := lay(t, pool, test.job)
			want := map[string]string{}
			for i, name := range names {
				want[name] = reapertest.One[string](t, pool, fmt.Sprintf(`select coalesce(c%d::text, 'NULL') from job_queue where job_kind = $1`, i), name)
				if v := values()[name]; test.job == "jsonb" && v.asJSONB != "" {
					want[name] = v.asJSONB
				} else if test.job != "jsonb" && v.asText != "" {
					want[name] = v.asText
				}
			}
			reapertest.Exec(t, pool, `
insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
select job_id, job_kind, 5, 5, 'e', 'me', row_to_json(q.*)::`+test.job+` from job_queue q`)
			reapertest.Exec(t, pool, `delete from job_queue`)

			page, err := deadletter.ListWithJobs(t.Context(), pool, deadletter.Store{}, deadletter.Filter{}, 1000)
			require.NoError(t, err)
			require.Len(t, page.Letters, len(names))
			require.Empty(t, redriveAll(t, pool, deadletter.Filter{}).Failures)

			for i, name := range names {
				got := reapertest.One[string](t, pool, fmt.Sprintf(`select coalesce(c%d::text, 'NULL') from job_queue where job_kind = $1`, i), name)
				require.Equal(t, want[name], got, name)
			}
			reapertest.RequireAgreement(t, pool)
		})
	}
}
