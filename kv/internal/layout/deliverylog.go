package layout

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
)

// What was delivered to an endpoint is told in pages, one for each checkpoint that
// has something to tell. Which there are stands in the endpoint's progress, so that
// they come and go with it.
const (
	// MaxPages and maxLogged bound how many pages there are: no more than MaxPages, and
	// none before those that hold maxLogged deliveries.
	MaxPages  = 100
	maxLogged = 1000
	// pageBytes is how large a page gets; answers of receivers are cut for it first.
	pageBytes = 64 << 10
)

// DeliveryLog tells which pages there are.
type DeliveryLog struct {
	First  uint64 // the number of the oldest
	Counts []int  // how many deliveries each has, the oldest first
}

// Next is the number that the next page gets.
func (l *DeliveryLog) Next() uint64 { return l.First + uint64(len(l.Counts)) }

// With is the log with one page more at its end and without those that it pushes out,
// which are those before its first.
func (l *DeliveryLog) With(count int) DeliveryLog {
	longer := DeliveryLog{First: l.First, Counts: append(append([]int(nil), l.Counts...), count)}
	total := 0
	for _, n := range longer.Counts {
		total += n
	}
	for len(longer.Counts) > MaxPages || total-longer.Counts[0] >= maxLogged {
		total -= longer.Counts[0]
		longer.First, longer.Counts = longer.First+1, longer.Counts[1:]
	}
	return longer
}

// Field numbers of a page, and of a delivery in it.
const (
	pageDelivery protowire.Number = 1 // repeated
	pageAnswer   protowire.Number = 2 // repeated: the answers that deliveries refer to

	loggedEvent   protowire.Number = 1
	loggedType    protowire.Number = 2
	loggedAttempt protowire.Number = 3 // repeated
	loggedAnswer  protowire.Number = 4 // the place of its answer, from 1
)

// LoggedPage is a page as it is stored.
type LoggedPage struct {
	Value []byte
	Count int
}

// PagesOf lays deliveries into pages, mostly one. Receivers answer most of the time
// the same, so that each answer is there once; where that is still too much, they are
// cut.
func PagesOf(delivered []store.Delivery) []LoggedPage {
	if len(delivered) == 0 {
		return nil
	}
	if len(delivered) <= maxLogged {
		for most := maxAnswer; ; most /= 4 {
			value := encodePage(delivered, most)
			if len(value) <= pageBytes || len(delivered) == 1 && most == 0 {
				return []LoggedPage{{value, len(delivered)}}
			}
			if most == 0 {
				break
			}
		}
	}
	half := len(delivered) / 2
	return append(PagesOf(delivered[:half]), PagesOf(delivered[half:])...)
}

// encodePage writes a page, with answers up to a length.
func encodePage(delivered []store.Delivery, answer int) []byte {
	b := []byte{formatVersion}
	var answers []string
	places := make(map[string]int)
	for i := range delivered {
		d := &delivered[i]
		m := appendString(nil, loggedEvent, d.EventID)
		m = appendString(m, loggedType, string(d.Type))
		m = appendAttempts(m, loggedAttempt, d.Attempts)
		if text := cutText(d.Answer, answer); text != "" {
			if places[text] == 0 {
				answers = append(answers, text)
				places[text] = len(answers)
			}
			m = appendUint(m, loggedAnswer, uint64(places[text]))
		}
		b = appendBytes(b, pageDelivery, m)
	}
	for _, text := range answers {
		b = appendString(b, pageAnswer, text)
	}
	return b
}

// DecodePage decodes a page of a delivery log.
func DecodePage(value []byte) ([]store.Delivery, error) {
	var delivered []store.Delivery
	var answers []string
	var refers []uint64
	err := DecodeValue(value, func(f Field) error {
		switch f.Num {
		case pageDelivery:
			d, answer, err := decodeLogged(f.Bytes)
			delivered, refers = append(delivered, d), append(refers, answer)
			return err
		case pageAnswer:
			answers = append(answers, f.string())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, at := range refers {
		if at > uint64(len(answers)) {
			return nil, ErrMalformed
		}
		if at > 0 {
			delivered[i].Answer = answers[at-1]
		}
	}
	return delivered, nil
}

func decodeLogged(message []byte) (d store.Delivery, answer uint64, err error) {
	d.Status = store.DeliveryDelivered
	err = decodeMessage(message, func(f Field) (err error) {
		switch f.Num {
		case loggedEvent:
			d.EventID = f.string()
		case loggedType:
			d.Type = licensing.EventType(f.string())
		case loggedAttempt:
			d.Attempts, err = decodeAttempt(d.Attempts, f.Bytes)
		case loggedAnswer:
			answer = f.varint
		}
		return err
	})
	if err == nil && d.EventID == "" {
		err = ErrMalformed
	}
	return d, answer, err
}
