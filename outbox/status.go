package outbox

// A State is where a stored message stands.
type State string

// The first three are open, the others terminal: only a replay (of a dead one) or a purge leaves them.
const (
	StatePending   State = "pending"
	StateLeased    State = "leased"
	StateParked    State = "parked"
	StateDelivered State = "delivered"
	StateDead      State = "dead"
	StateCancelled State = "cancelled"
	StateExpired   State = "expired"
)

func (s State) open() bool { return s == StatePending || s == StateLeased || s == StateParked }

// A Status is what a call did about one effect or message.
type Status string

const (
	// Recorded: the effect is stored, if the caller's transaction commits.
	Recorded Status = "recorded"
	// Duplicate: a message with this key and the same content is stored already; nothing was added.
	Duplicate Status = "duplicate"
	// Conflicted: the key is taken by a message with other content; nothing was added.
	Conflicted Status = "conflicted"
	// Suppressed: the context carried WithSuppressed; nothing was added.
	Suppressed Status = "suppressed"

	// Acknowledged: the delivery is recorded.
	Acknowledged Status = "acknowledged"
	// RetryScheduled: the message comes due again after Delay.
	RetryScheduled Status = "retry_scheduled"
	// DeadLettered: the message will not run again unless an operator replays it.
	DeadLettered Status = "dead_lettered"
	// Parked: the outcome is unknown; an operator resolves it.
	Parked Status = "parked"
	// StaleLease: the lease was over, or was not this one; nothing changed. Never perform or settle under that lease again.
	StaleLease Status = "stale_lease"
	// SettleUnknown: the settle was sent and no answer came; see SettleUnknownError.
	SettleUnknown Status = "settle_unknown"

	// Done: an operator's call changed the message.
	Done Status = "done"
	// NotOpen: a cancel found the message terminal.
	NotOpen Status = "not_open"
	// NotDead: a replay found the message in another state, or another operator was first.
	NotDead Status = "not_dead"
	// NotParked: a resolve found the message in another state, or another operator was first.
	NotParked Status = "not_parked"
	// NotFound: no such message in this scope.
	NotFound Status = "not_found"
)

// A Cause is why a message is dead.
type Cause string

const (
	// CausePermanent: the handler said that trying again cannot help, or an operator resolved it so.
	CausePermanent Cause = "permanent"
	// CauseMoot: the handler said that the effect no longer applies.
	CauseMoot Cause = "moot"
	// CauseAttempts: the policy's attempts are spent.
	CauseAttempts Cause = "attempts"
	// CauseAge: the message is older than it may be.
	CauseAge Cause = "age"
	// CauseExhausted: leases were lost until the attempts ran out, as when a message kills its worker.
	CauseExhausted Cause = "exhausted"
)
