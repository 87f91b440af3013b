package kv

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
)

// What was delivered to an endpoint is told in pages, one for each checkpoint that
// has something to tell. Which there are stands in the endpoint's progress, so that
// they come and go with it.
const (
	// maxPages and maxLogged bound how many pages there are: no more than maxPages, and
	// none before those that hold maxLogged deliveries.
	maxPages  = 100
	maxLogged = 1000
	// pageBytes is how large a page gets; answers of receivers are cut for it first.
	pageBytes = 64 << 10
)

// deliveryLog tells which pages there are.
type deliveryLog struct {
	first  uint64 // the number of the oldest
	counts []int  // how many deliveries each has, the oldest first
}

// next is the number that the next page gets.
func (l *deliveryLog) next() uint64 { return l.first + uint64(len(l.counts)) }

// with is the log with one page more at its end and without those that it pushes out,
// which are those before its first.
func (l *deliveryLog) with(count int) deliveryLog {
	longer := deliveryLog{first: l.first, counts: append(append([]int(nil), l.counts...), count)}
	total := 0
	for _, n := range longer.counts {
		total += n
	}
	for len(longer.counts) > maxPages || total-longer.counts[0] >= maxLogged {
		total -= longer.counts[0]
		longer.first, longer.counts = longer.first+1, longer.counts[1:]
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

// loggedPage is a page as it is stored.
type loggedPage struct {
	value []byte
	count int
}

// pagesOf lays deliveries into pages, mostly one. Receivers answer most of the time
// the same, so that each answer is there once; where that is still too much, they are
// cut.
func pagesOf(delivered []store.Delivery) []loggedPage {
	if len(delivered) == 0 {
		return nil
	}
	if len(delivered) <= maxLogged {
		for most := maxAnswer; ; most /= 4 {
			value := encodePage(delivered, most)
			if len(value) <= pageBytes || len(delivered) == 1 && most == 0 {
				return []loggedPage{{value, len(delivered)}}
			}
			if most == 0 {
				break
			}
		}
	}
	half := len(delivered) / 2
	return append(pagesOf(delivered[:half]), pagesOf(delivered[half:])...)
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

func decodePage(value []byte) ([]store.Delivery, error) {
	var delivered []store.Delivery
	var answers []string
	var refers []uint64
	err := decodeValue(value, func(f field) error {
		switch f.num {
		case pageDelivery:
			d, answer, err := decodeLogged(f.bytes)
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
			return nil, errMalformed
		}
		if at > 0 {
			delivered[i].Answer = answers[at-1]
		}
	}
	return delivered, nil
}

func decodeLogged(message []byte) (d store.Delivery, answer uint64, err error) {
	d.Status = store.DeliveryDelivered
	err = decodeMessage(message, func(f field) (err error) {
		switch f.num {
		case loggedEvent:
			d.EventID = f.string()
		case loggedType:
			d.Type = licensing.EventType(f.string())
		case loggedAttempt:
			d.Attempts, err = decodeAttempt(d.Attempts, f.bytes)
		case loggedAnswer:
			answer = f.varint
		}
		return err
	})
	if err == nil && d.EventID == "" {
		err = errMalformed
	}
	return d, answer, err
}
