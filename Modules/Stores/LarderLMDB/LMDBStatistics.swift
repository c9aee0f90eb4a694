#if LMDB
/// The size of an LMDB environment.
public struct LMDBStatistics: Sendable, Hashable {
  /// The bytes of a page, which everything is stored in.
  public let pageSize: Int
  /// The bytes of the memory map: how large the data file can be before the map grows.
  public let mapSize: Int
  /// The pages of the data file that have been in use up to now.
  public let pageCount: Int
  /// Those of them that are free to be used again.
  public let freePageCount: Int
  /// The number of the latest transaction that has written something.
  public let lastTransaction: Int
  /// How many slots of the table of readers have been in use at once, those of readers that are kept included.
  public let readerCount: Int
  /// How many slots the table has, for all processes together.
  public let maximumReaderCount: Int
}
#endif
