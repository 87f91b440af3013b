package licensing

import "time"

// Settings are what an account chooses for one mode. An owner without stored settings has the zero Settings.
type Settings struct {
	Owner        Owner
	ExternalKeys KeyMatching // empty: MatchExact
	// KeysFixed: the owner has external keys, or was about to store the first one. ExternalKeys can't change any more.
	KeysFixed bool
	// ChosenDays are the days that the account has chosen, if DaysChosen is set; see Expiring.
	ChosenDays ExpiringDays
	DaysChosen bool
}

// Expiring returns how many days before the end of a license the service records EventLicenseExpiring.
func (s *Settings) Expiring() ExpiringDays {
	if s.DaysChosen {
		return s.ChosenDays
	}
	return defaultExpiringDays
}

// Matching returns how the owner's external keys are matched.
func (s *Settings) Matching() KeyMatching {
	if s.ExternalKeys == "" {
		return MatchExact
	}
	return s.ExternalKeys
}

// SettingsRef names the settings of an owner.
func SettingsRef(owner Owner) Ref { return Ref{Kind: KindSettings, Owner: owner} }

// ChangeSettings changes the settings of an owner. ExternalKeys can't be changed once it is fixed.
type ChangeSettings struct {
	Owner        Owner
	ExternalKeys KeyMatching   // empty: stays as it is
	ExpiringDays *ExpiringDays // nil: stays as it is
}

// DeviceID is empty: no device is touched.
func (ChangeSettings) DeviceID() string { return "" }

func (c ChangeSettings) growth(r *Record, _ time.Time) Growth { return growthOfSettings(r) }

func (c ChangeSettings) apply(r *Record, _ time.Time) (Result, error) {
	next := settingsOf(r, c.Owner)
	if c.ExternalKeys != "" && c.ExternalKeys != next.Matching() {
		if next.KeysFixed {
			return Result{}, ErrSettingFixed
		}
		next.ExternalKeys = c.ExternalKeys
		r.Settings, r.Changed = &next, true
	}
	if c.ExpiringDays != nil && *c.ExpiringDays != next.Expiring() {
		next.ChosenDays, next.DaysChosen = *c.ExpiringDays, true
		r.Settings, r.Changed = &next, true
	}
	return Result{settings: &next}, nil
}

// FixKeyMatching fixes how the external keys of an owner are matched, before the owner stores the first one.
type FixKeyMatching struct{ Owner Owner }

// DeviceID is empty: no device is touched.
func (FixKeyMatching) DeviceID() string { return "" }

func (FixKeyMatching) growth(r *Record, _ time.Time) Growth { return growthOfSettings(r) }

func (c FixKeyMatching) apply(r *Record, _ time.Time) (Result, error) {
	next := settingsOf(r, c.Owner)
	if !next.KeysFixed {
		next.KeysFixed = true
		r.Settings, r.Changed = &next, true
	}
	return Result{settings: &next}, nil
}

// settingsOf returns a copy of the record's settings, or the settings of an owner who has stored none.
func settingsOf(r *Record, owner Owner) Settings {
	if r.Settings != nil {
		return *r.Settings
	}
	return Settings{Owner: owner}
}

func growthOfSettings(r *Record) Growth {
	if r.Settings == nil {
		return OrdinaryGrowth
	}
	return NoGrowth
}
