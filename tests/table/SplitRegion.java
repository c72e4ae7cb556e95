import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.util.Bytes;

/** SplitRegion TABLE KEY: splits the table's region at the key and waits until both halves are served. */
public class SplitRegion {
  public static void main(String[] arguments) throws Exception {
    try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
        Admin admin = connection.getAdmin()) {
      TableName table = TableName.valueOf(arguments[0]);
      int before = admin.getRegions(table).size();
      admin.split(table, Bytes.toBytes(arguments[1]));
      while (admin.getRegions(table).size() == before || !admin.isTableAvailable(table)) {
        Thread.sleep(100);
      }
    }
  }
}
