// NameNode, DataNode, ResourceManager and NodeManager, the real classes, in one JVM: a third of the memory of four.
// java -cp CONF:WEB:CLASSES:LIB/* OneJvmCluster READY_FILE

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.nodemanager.Context;
import org.apache.hadoop.yarn.server.nodemanager.LocalDirsHandlerService;
import org.apache.hadoop.yarn.server.nodemanager.NodeManager;
import org.apache.hadoop.yarn.server.nodemanager.ResourceView;
import org.apache.hadoop.yarn.server.nodemanager.webapp.WebServer;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.security.ApplicationACLsManager;

public class OneJvmCluster {

  public static void main(String[] arguments) throws Exception {
    Configuration.addDefaultResource("one-jvm-cluster.xml"); // the local file system
    DefaultMetricsSystem.setMiniClusterMode(true); // the daemons register metrics of the same names
    startHdfs();
    startYarn();
    new File(arguments[0]).createNewFile();
    Thread.currentThread().join();
  }

  /**
   * The local file system without a process per file: the jars hold no native library of Hadoop, and without it Hadoop
   * runs chmod for each of the thousands of files of an unpacked package, which takes minutes.
   */
  public static class NioLocalFs extends ChecksumFs {
    public NioLocalFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
      super(new NioRawLocalFs(conf));
    }
  }

  private static class NioRawLocalFs extends DelegateToFileSystem {
    NioRawLocalFs(Configuration conf) throws IOException, URISyntaxException {
      super(FsConstants.LOCAL_FS_URI, new NioRawLocalFileSystem(), conf, FsConstants.LOCAL_FS_URI.getScheme(), false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }

    @Override
    public boolean isValidName(String source) {
      return true; // whatever the operating system takes
    }
  }

  private static class NioRawLocalFileSystem extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      if (permission.getStickyBit()) {
        super.setPermission(path, permission);
        return;
      }
      String symbols = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL + permission.getOtherAction().SYMBOL;
      Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(symbols));
    }
  }

  private static void startHdfs() throws Exception {
    Configuration conf = new HdfsConfiguration();
    File names = new File(URI.create(conf.get("dfs.namenode.name.dir")));
    if (!new File(names, "current").exists()) {
      names.mkdirs();
      NameNode.format(conf);
    }
    NameNode nameNode = NameNode.createNameNode(new String[0], conf);
    DataNode.createDataNode(new String[0], new HdfsConfiguration());
    while (nameNode.isInSafeMode() || nameNode.getNamesystem().getNumLiveDataNodes() < 1) {
      Thread.sleep(50);
    }
  }

  private static void startYarn() throws Exception {
    ResourceManager resourceManager = new ResourceManager();
    resourceManager.init(new YarnConfiguration());
    resourceManager.start();
    // Guice keeps one servlet pipeline for the JVM: a second web application would take the first one's addresses
    NodeManager nodeManager =
        new NodeManager() {
          @Override
          protected WebServer createWebServer(
              Context context, ResourceView view, ApplicationACLsManager acls, LocalDirsHandlerService dirs) {
            return new WebServer(context, view, acls, dirs) {
              @Override
              protected void serviceStart() {}

              @Override
              protected void serviceStop() {}

              @Override
              public int getPort() {
                return 0;
              }
            };
          }
        };
    nodeManager.init(new YarnConfiguration());
    nodeManager.start();
    while (resourceManager.getResourceScheduler().getNumClusterNodes() < 1) {
      Thread.sleep(50);
    }
  }
}
