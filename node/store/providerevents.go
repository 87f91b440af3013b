package store

import "time"

// ProviderEvents says how far the nodes have read the events of an account at a payment provider. All times
// are by the provider's clock, except Next and the times in Again.
type ProviderEvents struct {
	From time.Time // the events before have been read; zero: none
	// To is the end of what the pass under way reads; zero: no pass is under way. A pass reads from the newest event
	// back to From. After is the id of the last event that the pass has read; empty: it has read none.
	To    time.Time
	After string
	Next  time.Time            // when a node may read the next events
	Again []ProviderEventAgain // at most MaxProviderEventsAgain
	// Key identifies the secret key of the provider with which the nodes have read the events; empty: it is unknown.
	Key string
}

// MaxProviderEventsAgain bounds the objects that the nodes ask about again. With 16, a shop that sold 10,000 orders in
// minutes had that many whose state could not be recorded yet, such as refunds of disputed payments, and the reading
// stopped at each further one.
const MaxProviderEventsAgain = 64

// ProviderEventAgain is an object that an event has named, and whose state could not be recorded.
type ProviderEventAgain struct {
	Kind, ID string
	Since    time.Time
	Tries    int // how often the nodes have asked again
	// AccountID is the owner's, if the account at the provider is shared; empty: it is not, or the owner is unknown.
	AccountID string
}
