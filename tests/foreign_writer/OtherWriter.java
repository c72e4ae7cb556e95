import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Another program that writes a table: reads commands, one a line, and prints "=> ok" or "=> " and the error for each.
 * Words are separated by spaces; keys, columns and values are in hexadecimal digits; the first word after the command is
 * the table. A value that is empty is "-".
 */
public class OtherWriter {
  private static final HexFormat HEX = HexFormat.of();
  private static final Configuration CONF = HBaseConfiguration.create();
  private static Connection connection;
  private static Admin admin;

  public static void main(String[] arguments) throws Exception {
    Path scratch = new Path(arguments[0]);
    connection = ConnectionFactory.createConnection(CONF);
    admin = connection.getAdmin();
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("=> ok");
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      String answer;
      try {
        answer = "ok " + run(line.split(" "), scratch);
      } catch (Exception error) {
        answer = error.toString().replace('\n', ' ');
      }
      System.out.println("=> " + answer);
    }
  }

  private static byte[] bytes(String word) {
    return word.equals("-") ? new byte[0] : HEX.parseHex(word);
  }

  private static byte[][] column(String word) {
    return CellUtil.parseColumn(bytes(word));
  }

  private static String run(String[] words, Path scratch) throws Exception {
    TableName name = TableName.valueOf(words[1]);
    try (Table table = connection.getTable(name)) {
      switch (words[0]) {
        case "put" -> {
          byte[][] column = column(words[3]);
          table.put(new Put(bytes(words[2])).addColumn(column[0], column[1], Long.parseLong(words[5]), bytes(words[4])));
        }
        case "time" -> {
          byte[][] column = column(words[3]);
          Cell found = table.get(new Get(bytes(words[2]))).getColumnLatestCell(column[0], column[1]);
          return found == null ? "0" : Long.toString(found.getTimestamp());
        }
        case "delete" -> {
          byte[][] column = column(words[3]);
          long time = Long.parseLong(words[4]);
          Delete delete = new Delete(bytes(words[2]));
          if (column.length == 1) {
            delete.addFamily(column[0], time);
          } else {
            delete.addColumns(column[0], column[1], time);
          }
          table.delete(delete);
        }
        case "remove" -> {
          Delete delete = new Delete(bytes(words[2]));
          for (byte[] family : table.getDescriptor().getColumnFamilyNames()) {
            delete.addFamily(family, Long.MAX_VALUE - 1);
          }
          table.delete(delete);
          compact(name);
        }
        case "expire" -> {
          byte[][] column = column(words[3]);
          Cell found = table.get(new Get(bytes(words[2]))).getColumnLatestCell(column[0], column[1]);
          if (found != null) {
            Put put = new Put(bytes(words[2]));
            put.addColumn(column[0], column[1], found.getTimestamp(), CellUtil.cloneValue(found));
            put.setTTL(1);
            table.put(put);
            Thread.sleep(5);
            compact(name);
          }
        }
        case "load" -> load(name, words, new Path(scratch, "load" + System.nanoTime()));
        case "flush" -> admin.flush(name);
        case "compact" -> compact(name);
        case "split" -> split(name, bytes(words[2]));
        case "snapshot" -> admin.snapshot(words[2], name);
        case "restore" -> {
          admin.disableTable(name);
          admin.restoreSnapshot(words[2]);
          admin.enableTable(name);
          admin.deleteSnapshot(words[2]);
        }
        default -> throw new IllegalArgumentException(words[0]);
      }
    }
    return "";
  }

  private static void compact(TableName name) throws Exception {
    admin.flush(name);
    admin.majorCompact(name);
    do {
      Thread.sleep(50);
    } while (admin.getCompactionState(name) != CompactionState.NONE);
  }

  /** Splits unless HBase rejects it, as it does for a region that has just been split. */
  private static void split(TableName name, byte[] key) throws Exception {
    int before = admin.getRegions(name).size();
    try {
      admin.split(name, key);
    } catch (IOException error) {
      return;
    }
    for (int tries = 0; tries < 100 && (admin.getRegions(name).size() == before || !admin.isTableAvailable(name)); tries++) {
      Thread.sleep(100);
    }
  }

  /** load TABLE COLUMN TIME KEY VALUE KEY VALUE ...: writes an HFile and gives it to the region servers. */
  private static void load(TableName name, String[] words, Path folder) throws Exception {
    byte[][] column = column(words[2]);
    TreeMap<byte[], byte[]> rows = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    for (int at = 4; at < words.length; at += 2) {
      rows.put(bytes(words[at]), bytes(words[at + 1]));
    }
    FileSystem files = folder.getFileSystem(CONF);
    Path file = new Path(new Path(folder, Bytes.toString(column[0])), "rows");
    try (HFile.Writer writer = HFile.getWriterFactory(CONF, new CacheConfig(CONF)).withPath(files, file)
        .withFileContext(new HFileContextBuilder().build()).create()) {
      for (Map.Entry<byte[], byte[]> row : rows.entrySet()) {
        writer.append(new KeyValue(row.getKey(), column[0], column[1], Long.parseLong(words[3]), row.getValue()));
      }
    }
    BulkLoadHFiles.create(CONF).bulkLoad(name, Map.of(column[0], List.of(file)));
    files.delete(folder, true);
  }
}
