package demo

import (
	"net"
	"net/http"
)

// A service is an HTTP server on a free port of this machine.
type service struct {
	url    string
	server *http.Server
}

func serve(handler http.Handler) (*service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{url: "http://" + listener.Addr().String(), server: &http.Server{Handler: handler}}
	go s.server.Serve(listener) // until stop
	return s, nil
}

func (s *service) stop() { s.server.Close() }
