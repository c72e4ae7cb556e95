# shellcheck shell=bash disable=SC2154  # what it does not set, scripts/services does
# OpenSearch of one node. Sourced by scripts/services, which prints the address for elastic.host:
#
#   nutch2py index -D elastic.host="$(scripts/services start opensearch)" -all
#
# OPENSEARCH_MEMORY is a JVM's -Xmx. JVM_OPTIONS replaces those that make a JVM start fast.

# read by scripts/services
# shellcheck disable=SC2034
all_parts=(opensearch)
# shellcheck disable=SC2034
default_parts=(opensearch)

configure() {
  local first=free
  [ "$instance" != default ] || first=9200
  http_port=$(setting opensearch "${port:-$first}")
  first=free
  [ "$instance" != default ] || first=9300
  transport_port=$(setting transport "$first")
  reached=$bind
  [ "$bind" != 0.0.0.0 ] || reached=127.0.0.1
}

prepare() {
  local source=$root/services/opensearch
  java_ready
  fetch_jars "$source/pom.xml" "$cache/lib"
  if [ ! "$cache/classes/OpenSearchNode.class" -nt "$source/OpenSearchNode.java" ]; then
    command -v javac >/dev/null || die "no javac on the PATH: install a JDK, not only a JRE (openjdk-17-jdk-headless)"
    javac -nowarn -Xlint:none -d "$cache/classes" -cp "$cache/lib/*" "$source/OpenSearchNode.java" 2>"$cache/javac.out" || {
      cat "$cache/javac.out" >&2
      die "OpenSearchNode.java does not compile"
    }
  fi
}

start_part() {
  if port_taken "$http_port"; then
    die "port $http_port is in use: stop what listens there, or start another instance (--instance NAME)"
  fi
  mkdir -p "$home/config" "$data/opensearch"
  cp "$root/services/opensearch/log4j2.properties" "$home/config/"
  # a write is answered when the disk has it, as everywhere; but how full the disk is does not matter here
  cat >"$home/config/opensearch.yml" <<SETTINGS
cluster.name: nutch
discovery.type: single-node
network.host: $bind
http.port: $http_port
transport.port: $transport_port
path.data: $data/opensearch
path.logs: $home/log
cluster.routing.allocation.disk.threshold_enabled: false
node.store.allow_mmap: false
SETTINGS
  # shellcheck disable=SC2086  # several words
  launch opensearch "-Xmx${OPENSEARCH_MEMORY:-512m}" ${JVM_OPTIONS--XX:TieredStopAtLevel=1 -XX:+UseSerialGC} \
    -Dfile.encoding=UTF-8 -Djava.awt.headless=true -XX:+ExitOnOutOfMemoryError "-XX:ErrorFile=$home/log/hs_err_%p.log" \
    -cp "$cache/classes:$cache/lib/*" OpenSearchNode "$home"
}

# _recovered: the indexes that were there are open again.
_recovered() {
  local answer
  answer=$(
    exec 3<>"/dev/tcp/$reached/$http_port"
    printf 'GET /_cluster/health?wait_for_status=yellow&timeout=1s HTTP/1.0\r\nHost: %s\r\n\r\n' "$reached" >&3
    cat <&3
  ) 2>/dev/null
  case $answer in *" 200 "*'"timed_out":false'*) return 0 ;; *) return 1 ;; esac
}

wait_part() { await opensearch 180 "opened its indexes" _recovered; }

stop_part() { halt "$1" TERM 60; }

delete_data() { rm -rf "$data/opensearch"; }

address() { printf 'http://%s:%s\n' "$reached" "$http_port"; }
