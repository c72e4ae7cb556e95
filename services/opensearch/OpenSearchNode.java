// One node of OpenSearch, the real classes, without the archive that it is distributed as.
// java -cp CLASSES:LIB/* OpenSearchNode HOME, HOME/config/opensearch.yml being its settings

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.lucene.analysis.cjk.CJKBigramFilter;
import org.apache.lucene.analysis.cjk.CJKWidthFilter;
import org.apache.lucene.analysis.en.PorterStemFilter;
import org.opensearch.common.logging.LogConfigurator;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.analysis.PreConfiguredTokenFilter;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.AnalysisPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

public class OpenSearchNode extends Node {

  // Every archive has the module analysis-common, Maven has not: of its filters, those that schema/elastic.json names.
  public static class Filters extends Plugin implements AnalysisPlugin {
    @Override
    public List<PreConfiguredTokenFilter> getPreConfiguredTokenFilters() {
      return List.of(
          PreConfiguredTokenFilter.singleton("cjk_width", true, CJKWidthFilter::new),
          PreConfiguredTokenFilter.singleton("cjk_bigram", false, CJKBigramFilter::new),
          PreConfiguredTokenFilter.singleton("porter_stem", false, PorterStemFilter::new));
    }
  }

  private OpenSearchNode(Environment environment) {
    super(environment, List.of(Netty4Plugin.class, Filters.class), false);
  }

  public static void main(String[] arguments) throws Exception {
    Settings home = Settings.builder().put("path.home", arguments[0]).build();
    Environment environment =
        InternalSettingsPreparer.prepareEnvironment(
            home, Map.of(), Path.of(arguments[0], "config"), () -> "nutch");
    LogConfigurator.configure(environment);
    Node node = new OpenSearchNode(environment);
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  try {
                    node.close();
                  } catch (java.io.IOException failure) {
                    failure.printStackTrace();
                  }
                }));
    node.start();
    Thread.currentThread().join();
  }
}
