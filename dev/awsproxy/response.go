package awsproxy

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// response is a complete answer.
type response struct {
	status int
	header http.Header
	body   []byte
}

// ok reports whether the call succeeded.
func (r *response) ok() bool { return r.status < 300 }

// setBody replaces the body; Content-Length follows when it is written.
func (r *response) setBody(body []byte) *response {
	r.body = body
	r.header.Del("Content-Length")
	return r
}

// newResponse builds an answer with the given body.
func newResponse(status int, contentType string, body []byte) *response {
	header := http.Header{}
	header.Set("Content-Type", contentType)
	header.Set("X-Amzn-Requestid", uuid.NewString())
	return &response{status: status, header: header, body: body}
}

const (
	contentXML  = "text/xml;charset=UTF-8"
	contentJSON = "application/x-amz-json-1.1"
)

// fail builds the error that the protocol of the request's service wants.
func (r *request) fail(status int, code, format string, args ...any) *response {
	message := fmt.Sprintf(format, args...)
	id := uuid.NewString()
	fault := "Sender"
	if status >= 500 {
		fault = "Receiver"
	}
	var body string
	switch r.service {
	case serviceKMS:
		text, _ := json.Marshal(map[string]string{"__type": code, "message": message})
		res := newResponse(status, contentJSON, text)
		res.header.Set("X-Amzn-Errortype", code)
		return res
	case serviceEC2:
		body = fmt.Sprintf("<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>%s</RequestID></Response>",
			escape(code), escape(message), id)
	case serviceS3:
		body = fmt.Sprintf("<Error><Code>%s</Code><Message>%s</Message><Resource>%s</Resource><RequestId>%s</RequestId></Error>",
			escape(code), escape(message), escape(r.http.URL.Path), id)
	default:
		body = fmt.Sprintf("<ErrorResponse><Error><Type>%s</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId></ErrorResponse>",
			fault, escape(code), escape(message), id)
	}
	res := newResponse(status, contentXML, []byte(xml.Header+body))
	if r.http.Method == http.MethodHead {
		res.body = nil
	}
	return res
}

// render answers an EC2 call: members are encoded as the children of
// <OperationResponse>.
func (r *request) render(members any) *response {
	name := r.operation + "Response"
	var inner strings.Builder
	// Anonymous structs have no name of their own to be an element.
	if err := xml.NewEncoder(&inner).EncodeElement(members, xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
		return r.fail(http.StatusInternalServerError, "InternalError", "the proxy cannot encode its answer: %v", err)
	}
	// The element itself is written below, with namespace and request id.
	text := inner.String()
	text = text[strings.Index(text, ">")+1 : strings.LastIndex(text, "<")]
	body := fmt.Sprintf(`%s<%s xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>%s</requestId>%s</%s>`,
		xml.Header, name, uuid.NewString(), text, name)
	return newResponse(http.StatusOK, contentXML, []byte(body))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

var errorCode = regexp.MustCompile(`<Code>([^<]+)</Code>`)

// code is the AWS error code of a failed answer, for records.
func (r *response) code() string {
	if r.ok() {
		return ""
	}
	if m := errorCode.FindSubmatch(r.body); m != nil {
		return string(m[1])
	}
	var body struct {
		Type string `json:"__type"`
	}
	if json.Unmarshal(r.body, &body) == nil && body.Type != "" {
		return body.Type[strings.LastIndex(body.Type, "#")+1:]
	}
	return http.StatusText(r.status)
}
