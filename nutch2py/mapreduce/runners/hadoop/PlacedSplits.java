package nutch2py;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.lib.NLineInputFormat;

/**
 * A map task for each line of a file, as NLineInputFormat makes them, and where it is best run: each line of the file
 * "hosts" beside it is the name of a machine, or empty.
 */
public class PlacedSplits extends NLineInputFormat {

  @Override
  public InputSplit[] getSplits(JobConf job, int count) throws IOException {
    InputSplit[] splits = super.getSplits(job, count);
    Path hosts = new Path(FileInputFormat.getInputPaths(job)[0].getParent(), "hosts");
    try (BufferedReader lines =
        new BufferedReader(
            new InputStreamReader(hosts.getFileSystem(job).open(hosts), StandardCharsets.UTF_8))) {
      for (int i = 0; i < splits.length; i++) {
        String host = lines.readLine();
        if (host != null && !host.isEmpty()) {
          FileSplit split = (FileSplit) splits[i];
          splits[i] =
              new FileSplit(split.getPath(), split.getStart(), split.getLength(), new String[] {host});
        }
      }
    }
    return splits;
  }
}
