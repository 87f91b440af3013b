package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// A survey costs etcd a third or so of a compare for each device. So it is
	// made once a quarter as many devices as there are have been compared, and
	// then it never comes to more than those have.
	surveyLeast = 256
	surveyShare = 4
	// surveyMost is how many devices a license has at most that is surveyed.
	surveyMost = rosterWeight / 2
	surveyPage = 1000
)

// survey is a reading of where all devices of a license are, at one of its
// revisions.
type survey struct {
	revision int64
	devices  int // as the license counts them
	// Since is what has changed after that revision, by position: what was bound,
	// and what was removed.
	since map[store.DeviceCursor]bool
}

// surveyIsDue tells whether it pays to come to know all devices of a license.
func (r *roster) surveyIsDue(devices int) bool {
	return !r.whole && r.survey == nil && devices <= surveyMost && r.guesses >= surveyLeast+devices/surveyShare
}

// startSurvey makes a survey in the background. There is one at a time.
func (s *Store) startSurvey(id licensing.LicenseID, v *survey) {
	if !s.surveying.CompareAndSwap(false, true) {
		s.memory.rosters.putOffSurvey(id, v)
		return
	}
	s.guard.StartIn(&s.background, "survey", func() {
		var bound map[store.DeviceCursor]struct{}
		defer s.surveying.Store(false)
		defer func() { s.memory.rosters.endSurvey(id, v, bound) }()
		found, err := s.readPositions(s.life, id, v)
		if err != nil {
			s.log.Debug().Err(err).Int("devices", v.devices).Msg("gave up surveying the devices of a license")
		} else if len(found) != v.devices {
			s.countBroken("device_count", "read")
		} else {
			bound = found
		}
	})
}

// readPositions reads the positions of a license's devices at a revision of it,
// and takes its time: it is never at it for more than half of it.
func (s *Store) readPositions(ctx context.Context, id licensing.LicenseID, v *survey) (map[store.DeviceCursor]struct{}, error) {
	found := make(map[store.DeviceCursor]struct{}, v.devices)
	prefix := layout.DevicesPrefix(id)
	width := sliceWidth(surveyPage, v.devices)
	position, from := uint64(0), prefix
	for {
		to, last := clientv3.GetPrefixRangeEnd(prefix), position >= math.MaxUint64-width
		if !last {
			to = prefix + string(binary.BigEndian.AppendUint64(nil, position+width))
		}
		began := time.Now()
		response, err := s.etcd.Page(ctx, "survey_devices", from, to, 2*surveyPage, v.revision, clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		for _, kv := range response.Kvs {
			if len(kv.Key) != len(prefix)+len(store.DeviceCursor{}) {
				return nil, fmt.Errorf("%w: the key of a device has %d bytes", layout.ErrMalformed, len(kv.Key))
			}
			found[store.DeviceCursor(kv.Key[len(prefix):])] = struct{}{}
		}
		switch {
		case response.More: // hashes cluster here
			from = etcd.After(response.Kvs[len(response.Kvs)-1].Key)
		case last:
			return found, nil
		default:
			from, position = to, position+width
		}
		rest := time.NewTimer(time.Since(began))
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return nil, ctx.Err()
		}
	}
}

// putOffSurvey leaves a survey for the next swap to begin.
func (s *rosters) putOffSurvey(id licensing.LicenseID, v *survey) {
	s.use(id, false, func(r *roster) {
		if r.survey == v {
			r.survey = nil
		}
	})
}

// endSurvey notes what a survey has found; nil: nothing.
func (s *rosters) endSurvey(id licensing.LicenseID, v *survey, found map[store.DeviceCursor]struct{}) {
	s.use(id, false, func(r *roster) {
		if r.survey != v {
			return // somebody else has written since
		}
		r.survey, r.guesses = nil, 0
		if found == nil {
			return
		}
		for position, isBound := range v.since {
			if isBound {
				found[position] = struct{}{}
			} else {
				delete(found, position)
			}
		}
		r.whole, r.bound = true, found
	})
}
