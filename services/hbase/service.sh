# shellcheck shell=bash disable=SC2154  # what it does not set, scripts/services does
# HBase: its master (with region server and ZooKeeper in the same JVM) and Thrift gateways. Sourced by scripts/services.
#
#   master          HBase itself
#   gateway         Thrift gateway that nutch2py talks to (buffered transport, binary protocol)
#   gateway-b       a second one
#   gateway-framed  one with framed transport and compact protocol
#   thrift2         gateway of the second Thrift interface: tables made with split regions
# Memory: HBASE_MEMORY, GATEWAY_MEMORY (a JVM's -Xmx). JVM_OPTIONS replaces the options that make a JVM start fast; set
# it empty for a server that runs for long. ZOOKEEPER_HOST: where a part that is started looks for ZooKeeper, at the same
# port: a proxy's address. ZOOKEEPER_SESSION, in ms: when ZooKeeper gives HBase's servers up (10000). SCANNER_TIMEOUT and SOCKET_TIMEOUT, in ms: see docs/stores/hbase.md.

# read by scripts/services
# shellcheck disable=SC2034
all_parts=(master gateway gateway-b gateway-framed thrift2)
# shellcheck disable=SC2034
default_parts=(master gateway)

configure() {
  local first=free
  [ "$instance" != default ] || first=9090
  gateway_port=$(setting gateway "${port:-$first}")
  first=free
  [ "$instance" != default ] || first=9095
  thrift2_port=$(setting thrift2 "$first")
  gateway_b_port=$(setting gateway-b free)
  framed_port=$(setting gateway-framed free)
  zookeeper_port=$(setting zookeeper free)
  master_port=$(setting master free)
  regionserver_port=$(setting regionserver free)
}

prepare() {
  java_ready
  fetch_jars "$root/services/hbase/pom.xml" "$cache/lib"
}

_java() {
  local part=$1 memory=$2 package
  shift 2
  local options=(
    "-Xmx$memory" -Djava.net.preferIPv4Stack=true
    "-Dlog4j2.configurationFile=$root/services/hbase/log4j2.properties"
    "-Dnutch2py.data=$data"
    "-Dnutch2py.zookeeper.port=$zookeeper_port"
    "-Dnutch2py.zookeeper.host=${ZOOKEEPER_HOST:-127.0.0.1}"
    "-Dnutch2py.zookeeper.session=${ZOOKEEPER_SESSION:-10000}"
    "-Dnutch2py.master.port=$master_port"
    "-Dnutch2py.regionserver.port=$regionserver_port"
    "-Dnutch2py.scanner.timeout=${SCANNER_TIMEOUT:-600000}"
    "-Dnutch2py.socket.timeout=${SOCKET_TIMEOUT:-0}"
    # what bin/hbase gives to JDK 11 and later
    -Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true --add-modules jdk.unsupported
  )
  for package in java.nio sun.nio.ch java.lang jdk.internal.ref java.lang.reflect java.util java.util.concurrent \
    jdk.internal.util.random; do
    options+=(--add-opens "java.base/$package=ALL-UNNAMED")
  done
  for package in jdk.internal.misc sun.net.dns sun.net.util; do
    options+=(--add-exports "java.base/$package=ALL-UNNAMED")
  done
  options+=(--add-exports java.security.jgss/sun.security.krb5=ALL-UNNAMED)
  # shellcheck disable=SC2086  # several words
  launch "$part" "${options[@]}" ${JVM_OPTIONS--XX:TieredStopAtLevel=1 -XX:+UseSerialGC} \
    -cp "$root/services/hbase:$cache/lib/*" "$@"
}

_gateway() {
  local part=$1 port=$2 interface=$3
  shift 3
  if port_taken "$port"; then
    die "port $port is in use: stop what listens there, or start another instance (--instance NAME)"
  fi
  _java "$part" "${GATEWAY_MEMORY:-1g}" "org.apache.hadoop.hbase.$interface.ThriftServer" start -b "$bind" -p "$port" \
    --infoport -1 "$@"
}

start_part() {
  case $1 in
    master) _java master "${HBASE_MEMORY:-2g}" org.apache.hadoop.hbase.master.HMaster start ;;
    gateway) _gateway "$1" "$gateway_port" thrift ;;
    gateway-b) _gateway "$1" "$gateway_b_port" thrift ;;
    gateway-framed) _gateway "$1" "$framed_port" thrift -f -c ;;
    thrift2) _gateway "$1" "$thrift2_port" thrift2 ;;
  esac
}

wait_part() {
  case $1 in
    master) await master 240 "come up" grep -q 'Master has completed initialization' "$home/log/master.out" ;;
    gateway) await "$1" 120 "opened its port" port_taken "$gateway_port" ;;
    gateway-b) await "$1" 120 "opened its port" port_taken "$gateway_b_port" ;;
    gateway-framed) await "$1" 120 "opened its port" port_taken "$framed_port" ;;
    thrift2) await "$1" 120 "opened its port" port_taken "$thrift2_port" ;;
  esac
}

stop_part() {
  case $1 in
    master) halt master TERM 120 ;; # writes what is in memory to files
    *) halt "$1" KILL 10 ;;         # holds nothing; SIGTERM would wait a minute for idle clients
  esac
}

delete_data() { rm -rf "$data/tmp" "$data/hbase" "$data/zookeeper"; }

address() {
  printf 'hbase://127.0.0.1:%s\n' "$gateway_port"
}
