package outbox

// Any is the wildcard of a pause; no name may be it.
const Any = "*"

// A PauseMode says what a pause does to running handlers.
type PauseMode int16

const (
	// PauseLeasing stops leasing; running handlers finish.
	PauseLeasing PauseMode = 0
	// PauseCancel also cancels running handlers at their next renewal, with cause ErrPaused; their messages are given back unspent.
	PauseCancel PauseMode = 1
)
