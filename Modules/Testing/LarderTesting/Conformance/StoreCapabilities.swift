/// The capabilities of a store beyond keeping values while it is open.
///
/// You tell a ``ConformanceSuite`` which capabilities the store lacks. The suite skips the cases that need them and
/// lists those cases in ``ConformanceSuite/skipped``. A case checks that the list of lacking capabilities is correct.
///
/// ```swift
/// let suite = ConformanceSuite(named: "CacheStore", lacking: [.persistence, .readOnlyAccess]) { _ in
///   MemoryStore<SampleValue?>()
/// }
/// ```
public struct StoreCapabilities: OptionSet, Sendable, Hashable {
  /// The capabilities as bits.
  public let rawValue: Int

  /// Creates a set of capabilities.
  ///
  /// - Parameter rawValue: The capabilities as bits.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// Entries are kept when the store is closed and the same location is reopened.
  ///
  /// A store whose durability is `volatile` lacks this capability.
  public static let persistence = StoreCapabilities(rawValue: 1 << 0)

  /// A write that has returned is kept even if the store is not closed.
  ///
  /// A store whose durability is `volatile` or `accepted` lacks this capability.
  public static let acknowledgedPersistence = StoreCapabilities(rawValue: 1 << 1)

  /// Values are encoded, so a value can be refused or found damaged.
  ///
  /// A store that keeps the values themselves lacks this capability.
  public static let encoding = StoreCapabilities(rawValue: 1 << 2)

  /// A write immediately refuses a value that cannot be encoded.
  ///
  /// A store that acknowledges a write before it encodes the value lacks this capability.
  public static let immediateRefusal = StoreCapabilities(rawValue: 1 << 3)

  /// Keys are listed and counted without decoding values.
  ///
  /// A store that must decode a value to know whether its entry exists lacks this capability.
  public static let keysWithoutValues = StoreCapabilities(rawValue: 1 << 4)

  /// The store can be opened for reading only.
  ///
  /// When opened with ``ConformanceLocation/access`` `readOnly`, the store reports that access in its information. A
  /// store that doesn't support an access, or is not persistent, lacks this capability.
  public static let readOnlyAccess = StoreCapabilities(rawValue: 1 << 5)

  /// The suite can start another process that opens the store.
  ///
  /// A suite without a `child` lacks this capability, as does every store on a platform without child processes, such
  /// as iOS.
  public static let otherProcesses = StoreCapabilities(rawValue: 1 << 6)

  /// The store can be observed.
  ///
  /// A store that is not an `ObservableStore` lacks this capability.
  public static let observation = StoreCapabilities(rawValue: 1 << 7)

  /// The store opens its files itself, and notices files that are damaged, moved or replaced.
  ///
  /// A store in a database that your program opens, or that a server has, lacks this capability.
  public static let ownFiles = StoreCapabilities(rawValue: 1 << 8)

  /// The suite can open the store with codecs of its own.
  ///
  /// A suite lacks this capability unless it was created with a closure that takes a codec.
  public static let codecs = StoreCapabilities(rawValue: 1 << 9)

  /// The store records the codec of its entries, and refuses another one.
  ///
  /// A view of a store of bytes without a record lacks this capability, so its program must use the right codec.
  public static let recordedCodecs = StoreCapabilities(rawValue: 1 << 10)

  /// All capabilities.
  public static let all = StoreCapabilities(explanations.map(\.capability))

  /// Readable explanations of lacking each capability.
  static let explanations: [(capability: StoreCapabilities, text: String)] = [
    (.persistence, "keeps no data after closing"),
    (.acknowledgedPersistence, "may lose returned writes if it is not closed"),
    (.encoding, "does not encode values"),
    (.immediateRefusal, "may acknowledge a write before it encodes the value"),
    (.keysWithoutValues, "must decode values to list keys"),
    (.readOnlyAccess, "cannot be opened for reading only"),
    (.otherProcesses, "cannot be opened in another process because the suite has no child"),
    (.observation, "cannot be observed"),
    (.recordedCodecs, "does not record its codec"),
    (.codecs, "is not opened with a codec of the suite"),
    (.ownFiles, "leaves opening its files to others"),
  ]
}
