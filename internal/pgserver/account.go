package pgserver

import (
	"errors"
	"os"
	"os/user"
	"strconv"
)

// account is the user that runs a server when we are root, whom PostgreSQL refuses.
type account struct{ uid, gid int }

// unprivileged returns the account to run a server as, nil for our own.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		return &account{uid: uid, gid: gid}, errors.Join(uidErr, gidErr)
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")
}
