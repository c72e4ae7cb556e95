# shellcheck shell=bash disable=SC2154  # what it does not set, scripts/services does
# Hadoop: HDFS and YARN of one node. Sourced by scripts/services, which prints the HADOOP_HOME to use:
#
#   export HADOOP_HOME=$(scripts/services start hadoop)
#
#   cluster   NameNode, DataNode, ResourceManager and NodeManager in one JVM (350 MB)
#   namenode, datanode, resourcemanager, nodemanager: the same as a JVM each (900 MB); instead of cluster, not beside it
# CLUSTER_MEMORY is the -Xmx of `cluster`. JVM_OPTIONS replaces the options that make a JVM start fast.

# read by scripts/services
# shellcheck disable=SC2034
all_parts=(cluster namenode datanode resourcemanager nodemanager)
# shellcheck disable=SC2034
default_parts=(cluster)

_ports=(namenode namenode_http resourcemanager resourcemanager_http datanode datanode_http datanode_ipc scheduler tracker
  admin nodemanager localizer nodemanager_http collector shuffle history)

configure() {
  local name fixed=(8020 9870 8032 8088) number=0 first
  for name in "${_ports[@]}"; do
    first=free
    if [ "$instance" = default ] && [ $number -lt ${#fixed[@]} ]; then first=${fixed[number]}; fi
    if [ "$name" = namenode ] && [ -n "$port" ]; then first=$port; fi
    printf -v "${name}_port" '%s' "$(setting "$name" "$first")"
    number=$((number + 1))
  done
  hadoop_home=$home/hadoop
}

prepare() {
  local lib=$cache/lib source=$root/services/hadoop file script name web
  java_ready
  fetch_jars "$source/pom.xml" "$lib"
  if [ ! "$cache/classes/OneJvmCluster.class" -nt "$source/OneJvmCluster.java" ]; then
    command -v javac >/dev/null || die "no javac on the PATH: install a JDK, not only a JRE (openjdk-17-jdk-headless)"
    javac -nowarn -Xlint:none -d "$cache/classes" -cp "$lib/*" "$source/OneJvmCluster.java" 2>"$cache/javac.out" || {
      cat "$cache/javac.out" >&2
      die "OneJvmCluster.java does not compile"
    }
  fi
  # the jar of HDFS lacks the folders of its web pages: empty ones do
  for web in hdfs datanode static; do mkdir -p "$cache/web/webapps/$web"; done
  mkdir -p "$hadoop_home/bin" "$hadoop_home/etc/hadoop" "$hadoop_home/share/hadoop/tools/lib"
  cp "$source/bin/hadoop" "$hadoop_home/bin/hadoop"
  cp "$source/bin/hadoop" "$hadoop_home/bin/yarn"
  ln -sfn "$lib" "$hadoop_home/share/hadoop/lib"
  ln -sf "$lib"/hadoop-streaming-*.jar "$hadoop_home/share/hadoop/tools/lib/"
  script="s|@data@|$data|g;s|@lib@|$lib|g;s|@conf@|$hadoop_home/etc/hadoop|g;s|@user@|$(id -un)|g;s|@group@|$(id -gn)|g"
  for name in "${_ports[@]}"; do
    file=${name}_port
    script="$script;s|@$name@|${!file}|g"
  done
  for file in "$source"/conf/*; do sed "$script" "$file" >"$hadoop_home/etc/hadoop/$(basename "$file")"; done
}

_java() {
  local part=$1 memory=$2
  shift 2
  mkdir -p "$data/tmp"
  # Guice in the daemons with web pages needs the opened package on JDK 17
  # shellcheck disable=SC2086  # several words
  launch "$part" "-Xmx$memory" ${JVM_OPTIONS--XX:TieredStopAtLevel=1 -XX:+UseSerialGC} \
    --add-opens=java.base/java.lang=ALL-UNNAMED -Djava.net.preferIPv4Stack=true -Dhadoop.root.logger=INFO,console \
    "-Dhadoop.home.dir=$hadoop_home" "-Dhadoop.log.dir=$home/log" "-Dyarn.log.dir=$home/log" "-Djava.io.tmpdir=$data/tmp" \
    -cp "$hadoop_home/etc/hadoop:$cache/web:$cache/classes:$cache/lib/*" "$@"
}

start_part() {
  local server=org.apache.hadoop port
  case $1 in cluster | namenode) port=$namenode_port ;; resourcemanager) port=$resourcemanager_port ;; *) port='' ;; esac
  if [ -n "$port" ] && port_taken "$port"; then
    die "port $port is in use: stop what listens there, or start another instance (--instance NAME)"
  fi
  case $1 in
    cluster)
      rm -f "$home/ready"
      _java cluster "${CLUSTER_MEMORY:-768m}" OneJvmCluster "$home/ready"
      ;;
    namenode)
      if [ ! -d "$data/hdfs/name/current" ]; then
        java -XX:TieredStopAtLevel=1 -Dhadoop.root.logger=WARN,console -cp "$hadoop_home/etc/hadoop:$cache/lib/*" \
          $server.hdfs.server.namenode.NameNode -format -nonInteractive >&2 || die "cannot format $data/hdfs/name"
      fi
      _java "$1" 256m $server.hdfs.server.namenode.NameNode
      ;;
    datanode) _java "$1" 256m $server.hdfs.server.datanode.DataNode ;;
    resourcemanager) _java "$1" 384m $server.yarn.server.resourcemanager.ResourceManager ;;
    nodemanager) _java "$1" 384m $server.yarn.server.nodemanager.NodeManager ;;
  esac
}

wait_part() {
  case $1 in
    cluster) await cluster 240 "come up" test -f "$home/ready" ;;
    namenode) await "$1" 120 "opened its port" port_taken "$namenode_port" ;;
    datanode) await "$1" 120 "opened its port" port_taken "$datanode_port" ;;
    resourcemanager) await "$1" 120 "opened its port" port_taken "$resourcemanager_port" ;;
    nodemanager) await "$1" 120 "registered" grep -q 'Registered with ResourceManager' "$home/log/nodemanager.out" ;;
  esac
}

stop_part() { halt "$1" TERM 30; }

# end_left_over: end the containers of a NodeManager that is gone: they would try to reach it for minutes.
end_left_over() {
  local folder
  if alive cluster || alive nodemanager; then return 0; fi
  for folder in /proc/[0-9]*; do
    case $(readlink "$folder/cwd" 2>/dev/null) in
      "$data"/node/*) kill -KILL "${folder#/proc/}" 2>/dev/null || true ;;
    esac
  done
}

delete_data() { rm -rf "$data/tmp" "$data/hdfs" "$data/node"; }

address() { printf '%s\n' "$hadoop_home"; }
