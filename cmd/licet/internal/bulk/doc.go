// Package bulk moves licenses and orders between a service and CSV files, through the API. It implements licet licenses
// export, licet licenses import and licet orders export. The flags and the output of these commands are in package cli.
// Licenses of other services become a CSV file in package migrate.
//
// Exports and imports can be killed at any time. Repeating the same call continues.
//
// # Export
//
// [Export] reads a listing page by page and writes a row for each license or order. A second file stores the position:
// the cursor of the next page, and the length of the CSV file before it. Export writes the position only after the rows
// before it are on disk, and cuts the CSV file off at the position when it continues. So an export neither loses nor
// repeats rows: a cursor continues at the same item, whatever was created meanwhile.
//
// # Import
//
// [Import] reads its file three times. First it checks all rows, so that a mistake in the last row changes nothing.
// Then it sends the rows, several at a time. Finally it sorts the results in the order of the file.
//
// A row that names no license grants licenses, and Import must never grant them twice. The service remembers an
// Idempotency-Key for a day, and executes a request with that key once. Before Import sends a row, it writes the row to
// a journal on disk. The Idempotency-Key consists of the import's random id, which is in the first line of the journal,
// and of the row. After a crash the next run knows which rows may have been granted, and sends them again with the same
// key. If the response to a row is missing for a day, a person has to decide: see [Import.Skip].
//
// A refused row keeps its Idempotency-Key as long as the service remembers the key: an earlier request may still be on
// its way. The row gets a new key if the service stores the refusal under the key, or has forgotten the key.
//
// A row that names a license changes it to the values of the row. This is idempotent and needs no key. Import
// skips values that are already set, so that an edited export can be imported as a whole.
//
// Only the journal decides how an import continues. The results are derived from the journal, for people.
//
//	columns.go     columns of an export of licenses
//	orders.go      columns of an export of orders
//	export.go      Export
//	exportfile.go  an export to a file, with its position
//	formula.go     apostrophes before formulas
//	rowwriter.go   rows of an import, written for package migrate
//	lines.go       CSV files of spreadsheets as bytes for encoding/csv
//	table.go       header and rows of a CSV file
//	rows.go        validation of rows
//	metadata.go    validation of metadata
//	entitlements.go validation of entitlements
//	check.go       the first reading: check all rows
//	repeated.go    licenses that two rows name, by id and by key
//	import.go      Import: start and continue
//	run.go         the second reading: send rows
//	parallel.go    several rows at a time
//	states.go      the state of each row
//	journal.go     the journal
//	results.go     the results
//	replace.go     ReplaceInput: other rows for an import
//	files.go       locks and atomic replacement of files
package bulk
