package control

// Help is what GET / prints.
const Help = `devstack control API

  GET    /faults                         faults and stuck states that are on
  POST   /faults                         switch one on (JSON, see below); answers it with its id
  DELETE /faults[?target=aws]            switch all off, or all of one target
  DELETE /faults/<id>                    switch one off
  GET    /inventory[?id=&cluster=&all=]  what exists in the AWS emulator: all with our identity tag or a
                                         kubernetes.io/cluster tag; of one identity; of one technicalID;
                                         all=true lists untagged resources, too
  GET    /calls[?service=&operation=&after=&limit=]
                                         calls to AWS, oldest first (a ring of the last 10000)
  DELETE /calls                          forget them
  GET    /processes                      children of the stack
  POST   /processes/<name>/<action>      action: kill (SIGKILL), stop (SIGTERM), start; of temporal also
                                         wipe: kill, lose all data, start again
  POST   /outage/<system>[?for=60s]      system: apiserver, garden, temporal, aws; ends by itself
  DELETE /outage/<system>                end it now
  GET    /healthz

Faults. Every selector that is set must match, an empty one matches everything.

  target          kinds                                         selectors
  aws             throttle, server-error, delay, lost-answer,   service, operation (CreateVpc or Create*),
                  lost-request, deny, eventual                  account, resource (part of the request)
  shoot           stuck, error, delay                           namespace, name, phase (Create, Reconcile,
                                                                Hibernate, Wake, Delete)
  tidb            stuck                                         shoot, namespace, name, component (pd, tikv,
                                                                tidb, tiflash, initializer)
  loadbalancer    stuck                                         shoot, namespace, name
  config-service  server-error, delay, lost-answer              resource (part of path and query)

  throttle      the service's own throttling error        lost-answer   done, then the connection is reset
  server-error  500, or "status", without effect          lost-request  the connection is reset, nothing done
  delay         held for "delay" (1s), then done          deny          the service's access-denied error
  stuck         stays unfinished while the fault is on    error         fails with "codes" and "message"
  eventual      the first calls about a role, OIDC provider, key, alias, bucket, hosted zone, endpoint service or
                load balancer that is fresh answer the service's not-found error; lists of these, and of DNS
                records, show one more that is gone at the next look

  more fields   count     strikes so often, then it is removed (aws, config-service)
                rate      calls a second that get through all the same (throttle): an account's allowance
                looks     so many calls of each operation about a fresh thing find nothing (eventual; 1)
                delay     how long a thing is fresh (eventual; 10s)
                every     only every so many-th operation on a fresh thing, after "skip" of them (eventual)
                for       switches itself off after this time ("90s")
                progress  where a Shoot's operation is struck, per cent
                codes     Gardener's, such as ["ERR_INFRA_QUOTA_EXCEEDED"]
                message   replaces the error's text
                standIns  true: strikes the calls of Gardener's infrastructure and of the load-balancer
                          controller, too (aws); else only those of the product and of people

Examples

  curl -d '{"target":"aws","kind":"lost-answer","operation":"CreateHostedZone","count":1}' $DEVSTACK_CONTROL/faults
  curl -d '{"target":"aws","kind":"throttle","service":"ec2","for":"30s"}' $DEVSTACK_CONTROL/faults
  curl -d '{"target":"aws","kind":"throttle","account":"222222222222","rate":0.5}' $DEVSTACK_CONTROL/faults
  curl -d '{"target":"aws","kind":"eventual","service":"iam","delay":"2s","looks":100}' $DEVSTACK_CONTROL/faults
  curl -d '{"target":"shoot","kind":"error","phase":"Create","codes":["ERR_INFRA_QUOTA_EXCEEDED"]}' $DEVSTACK_CONTROL/faults
  curl -d '{"target":"tidb","kind":"stuck","component":"tikv"}' $DEVSTACK_CONTROL/faults
  curl -X POST $DEVSTACK_CONTROL/processes/worker/kill
  curl -X POST "$DEVSTACK_CONTROL/outage/temporal?for=30s"
`
