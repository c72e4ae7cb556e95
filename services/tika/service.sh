# shellcheck shell=bash disable=SC2154  # what it does not set, scripts/services does
# Apache Tika's server. Sourced by scripts/services, which prints the address for tika.server.url:
#
#   nutch2py parse -D tika.server.url="$(scripts/services start tika)" -all
#
# TIKA_MEMORY is a JVM's -Xmx. JVM_OPTIONS replaces those that make a JVM start fast.

# read by scripts/services
# shellcheck disable=SC2034
all_parts=(tika)
# shellcheck disable=SC2034
default_parts=(tika)

configure() {
  local first=free
  [ "$instance" != default ] || first=9998
  http_port=$(setting tika "${port:-$first}")
  reached=$bind
  [ "$bind" != 0.0.0.0 ] || reached=127.0.0.1
}

prepare() {
  java_ready
  fetch_jars "$root/services/tika/pom.xml" "$cache/lib" dependency:copy
}

start_part() {
  if port_taken "$http_port"; then
    die "port $http_port is in use: stop what listens there, or start another instance (--instance NAME)"
  fi
  mkdir -p "$data/tmp"
  # -noFork: one JVM, which is the one that is stopped
  # shellcheck disable=SC2086  # several words
  launch tika "-Xmx${TIKA_MEMORY:-512m}" ${JVM_OPTIONS--XX:TieredStopAtLevel=1 -XX:+UseSerialGC} \
    -Dfile.encoding=UTF-8 -Djava.awt.headless=true "-Djava.io.tmpdir=$data/tmp" -XX:+ExitOnOutOfMemoryError \
    "-XX:ErrorFile=$home/log/hs_err_%p.log" -cp "$cache/lib/*" org.apache.tika.server.core.TikaServerCli \
    -h "$bind" -p "$http_port" -noFork
}

_answers() {
  local answer
  answer=$(
    exec 3<>"/dev/tcp/$reached/$http_port"
    printf 'GET /version HTTP/1.0\r\nHost: %s\r\n\r\n' "$reached" >&3
    cat <&3
  ) 2>/dev/null
  case $answer in *" 200 "*) return 0 ;; *) return 1 ;; esac
}

wait_part() { await tika 120 "answered" _answers; }

stop_part() { halt "$1" TERM 20; }

delete_data() { rm -rf "$data/tmp"; }

address() { printf 'http://%s:%s\n' "$reached" "$http_port"; }
