package etcd

import (
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxLogged bounds the causes that are logged while a member does not answer.
const maxLogged = 4

// report logs a change of a member's state. A member is often lost by a time-out or a closed connection, and the reason
// why it stays away, such as a certificate that is not trusted, shows only later. So each cause is logged once.
func (m *members) report(member *member, before error) {
	log := m.log.With().Str("endpoint", member.endpoint).Logger()
	if member.err == nil {
		member.loggedCauses = nil
		if before != nil {
			log.Info().Msg("the etcd member answers again")
		}
		return
	}
	if errors.Is(member.err, ErrBarred) {
		if !errors.Is(before, ErrBarred) {
			log.Error().Err(member.err).Msg("this node no longer uses the etcd member")
		}
		return
	}
	why := cause(member.err)
	known := slices.Contains(member.loggedCauses, why) || len(member.loggedCauses) == maxLogged
	if !known {
		member.loggedCauses = append(member.loggedCauses, why)
	}
	switch {
	case before == nil:
		log.Warn().Str("cause", why).Msg("the etcd member does not answer")
	case !known:
		log.Warn().Str("cause", why).Msg("the etcd member still does not answer")
	}
}

// unread returns the error of a failed read by a running member. Without a quorum the failure is only a time-out,
// which would make operators suspect the network.
func unread(err error) error {
	s := status.Convert(err)
	if s.Code() != codes.DeadlineExceeded && s.Code() != codes.Unavailable {
		return err
	}
	return status.Errorf(s.Code(), "it runs, but can't read, as where most members of its cluster are down: %s",
		s.Message())
}

// cause is an error's text without gRPC's framing.
func cause(err error) string { return status.Convert(err).Message() }
