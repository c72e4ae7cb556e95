# shellcheck shell=bash disable=SC2154  # what it does not set, scripts/services does
# Solr with the configset of schema/solr. Sourced by scripts/services, which prints the address for solr.server.url:
#
#   scripts/crawl urls web "$(scripts/services start solr)" 3
#
#   solr    one node, core nutch
#   cloud   one node of SolrCloud with ZooKeeper inside, collection nutch; beside `solr`, with data of its own
# SOLR_MEMORY is a JVM's -Xmx. SOLR_OPTIONS: more options for it. JVM_OPTIONS replaces the choice of the collector; with
# -XX:TieredStopAtLevel=1 Solr starts with less CPU, and takes 1.6 times as much for each page.

# read by scripts/services
# shellcheck disable=SC2034
all_parts=(solr cloud)
# shellcheck disable=SC2034
default_parts=(solr)

configure() {
  local first=free
  [ "$instance" != default ] || first=8983
  solr_port=$(setting solr "${port:-$first}")
  first=free
  [ "$instance" != default ] || first=8984
  cloud_port=$(setting cloud "$first")
  reached=$bind
  [ "$bind" != 0.0.0.0 ] || reached=127.0.0.1
}

prepare() {
  java_ready
  fetch_jars "$root/services/solr/pom.xml" "$cache/lib"
}

_port() {
  local name=${1}_port
  printf '%s\n' "${!name}"
}

# _get PART PATH: print the answer to a GET, headers included.
_get() {
  (
    exec 3<>"/dev/tcp/$reached/$(_port "$1")"
    printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$2" "$reached" >&3
    cat <&3
  ) 2>/dev/null
}

_answers() { case $(_get "$1" "$2" | head -n 1) in *" 200 "*) return 0 ;; *) return 1 ;; esac }

start_part() {
  local part=$1 port solr_home=$data/$1 options=()
  port=$(_port "$part")
  if (exec 3<>"/dev/tcp/$reached/$port") 2>/dev/null; then
    die "port $port is in use: stop what listens there, or start another instance (--instance NAME)"
  fi
  mkdir -p "$solr_home/configsets/nutch/conf"
  cp "$root/services/solr/home/solr.xml" "$solr_home/"
  rm -f "$solr_home"/configsets/nutch/conf/*
  cp "$root"/schema/solr/conf/* "$solr_home/configsets/nutch/conf/"
  if [ "$part" = cloud ]; then
    cp "$root/services/solr/home/zoo.cfg" "$solr_home/"
    options=(-DzkRun)
  elif [ ! -f "$solr_home/nutch/core.properties" ]; then
    mkdir -p "$solr_home/nutch"
    printf 'name=nutch\nconfigSet=nutch\n' >"$solr_home/nutch/core.properties"
  fi
  # solr.install.dir must not be where the jars are: Solr loads those of its folder lib a second time
  # shellcheck disable=SC2086  # several words
  launch "$part" "-Xmx${SOLR_MEMORY:-512m}" -Xss512k ${JVM_OPTIONS--XX:+UseSerialGC} \
    -Duser.timezone=UTC -Dfile.encoding=UTF-8 -Djava.awt.headless=true -XX:+ExitOnOutOfMemoryError \
    "-XX:ErrorFile=$home/log/hs_err_%p.log" "-Djetty.host=$bind" "-Djetty.port=$port" "-Dhost=$reached" \
    "-Dsolr.solr.home=$solr_home" "-Dsolr.install.dir=$data" "-Dsolr.log.dir=$home/log" \
    "-Dlog4j2.configurationFile=$root/services/solr/log4j2.xml" ${options[@]+"${options[@]}"} ${SOLR_OPTIONS:-} \
    -cp "$cache/lib/*" org.eclipse.jetty.xml.XmlConfiguration "$root/services/solr/jetty.xml"
}

# _settled: the core has been loaded, or cannot be; the answer's status is left in $answer.
_settled() {
  answer=$(_get solr '/solr/nutch/admin/ping?wt=json' | head -n 1)
  case $answer in *" 200 "* | *" 404 "* | *" 500 "*) return 0 ;; *) return 1 ;; esac
}

# After a kill the transaction log is replayed in the background, and searches miss its documents meanwhile (state 0).
_replayed() { case $(_get solr '/solr/admin/metrics?key=solr.core.nutch:TLOG.state&wt=json') in *'TLOG.state":3'*) return 0 ;; *) return 1 ;; esac }

wait_part() {
  local answer=''
  if [ "$1" = solr ]; then
    await solr 180 "loaded its core" _settled
    case $answer in
      *" 200 "*) ;;
      *)
        grep -E ' (ERROR|Caused by)' "$home/log/solr.out" | tail -n 5 >&2
        halt solr TERM 60
        die "solr could not load the core nutch; its output is $home/log/solr.out"
        ;;
    esac
    await solr 600 "replayed its transaction log" _replayed
    return 0
  fi
  await cloud 180 "come up" _answers cloud /solr/admin/info/system
  case $(_get cloud '/solr/admin/collections?action=LIST&wt=json') in
    *'"nutch"'*) ;;
    *)
      _upload
      _answers cloud "/solr/admin/collections?action=CREATE&name=nutch&collection.configName=nutch&numShards=${SHARDS:-1}&replicationFactor=1" ||
        die "solr could not make the collection nutch; its output is $home/log/cloud.out"
      ;;
  esac
  await cloud 180 "made its collection searchable" _answers cloud '/solr/nutch/select?q=*:*&rows=0'
}

# The configset goes to ZooKeeper with Solr's own program, which is among the jars.
_upload() {
  java -XX:TieredStopAtLevel=1 "-Dsolr.install.dir=$data" "-Dlog4j2.configurationFile=$root/services/solr/log4j2.xml" \
    -cp "$cache/lib/*" org.apache.solr.cli.SolrCLI zk upconfig -n nutch -d "$data/cloud/configsets/nutch/conf" \
    -z "$reached:$((cloud_port + 1000))" >&2 || die "cannot upload the configset to ZooKeeper"
}

stop_part() { halt "$1" TERM 90; } # writes what is not committed

delete_data() { rm -rf "$data/solr" "$data/cloud"; }

address() {
  local part=${parts[0]:-solr}
  printf 'http://%s:%s/solr/nutch\n' "$reached" "$(_port "$part")"
}
