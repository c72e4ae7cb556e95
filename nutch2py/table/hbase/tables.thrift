// The part of HBase's second Thrift interface (THBaseService) that makes tables and namespaces. The first interface,
// which everything else here uses, can make neither a table with split regions nor a namespace.
enum TBloomFilterType { NONE = 0, ROW = 1, ROWCOL = 2 }
enum TCompressionAlgorithm { LZO = 0, GZ = 1, NONE = 2, SNAPPY = 3, LZ4 = 4, BZIP2 = 5, ZSTD = 6 }

struct TTableName {
  1: optional binary ns
  2: required binary qualifier
}
struct TColumnFamilyDescriptor {
  1: required binary name
  4: optional i32 blockSize
  5: optional TBloomFilterType bloomnFilterType
  6: optional TCompressionAlgorithm compressionType
  10: optional i32 maxVersions
  13: optional i32 timeToLive
  14: optional bool blockCacheEnabled
  20: optional bool inMemory
}
struct TTableDescriptor {
  1: required TTableName tableName
  2: optional list<TColumnFamilyDescriptor> columns
}
struct TNamespaceDescriptor {
  1: required string name
}
exception TIOError {
  1: optional string message
}
service THBaseService {
  void createTable(1: required TTableDescriptor desc, 2: optional list<binary> splitKeys) throws (1: TIOError io)
  void createNamespace(1: required TNamespaceDescriptor namespaceDesc) throws (1: TIOError io)
}
