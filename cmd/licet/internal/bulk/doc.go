// Package bulk moves licenses between a service and CSV files, through the API
// and with an API key, as anybody could. It is what licet licenses export and
// licet licenses import do.
//
// Both may be killed at any moment, and the same call goes on afterwards.
//
// # Export
//
// [Export] pages through a listing and writes a row for each license. Beside a
// file it keeps the place where it is: the cursor of the next page, and how long
// the file was before it. The place is put down only after the rows before it are
// on disk; what is behind the last place is cut off when the export goes on. So
// no row is lost and none is there twice, since a cursor leads on from the same
// license whatever was made meanwhile.
//
// # Import
//
// [Import] reads its file three times. First all rows are checked, so that a file
// with a mistake in its last row changes nothing. Then the rows are sent, a few
// at a time. At last the results are put in the order of the file.
//
// A row without a license key grants licenses, and granting twice is what must
// never happen. The service remembers an Idempotency-Key for a day, and does
// under it once what is asked for. So before a row is sent, the journal beside
// the file says so, on disk. The key follows from the import's random id, which
// the first line of the journal has, and from the row. Whatever happens then, the
// next run knows which rows may have been granted, and sends them again under
// the key they had. A row whose answer did not come within that day is left to
// people, see [Import.Skip].
//
// A refused row keeps its key as well, as long as the service would know it: an
// earlier try of it may still be on its way. It gets another one where the service
// keeps the refusal itself under the key, or has forgotten all of it.
//
// A row with a license key changes that license to what the row says, and needs
// none of this: done twice it is the same. What is as the row says already is left
// alone, so that an export can be edited and imported as a whole.
//
// The journal alone decides how an import goes on. The results are made out of it
// and are for people.
package bulk
