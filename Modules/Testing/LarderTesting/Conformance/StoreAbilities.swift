/// What a store can do beyond keeping values while it is open.
///
/// The author of a ``ConformanceSuite`` states which of these the store lacks; the cases that need one of those are
/// skipped and listed. A case checks that the statement is true.
public struct StoreAbilities: OptionSet, Sendable, Hashable {
  /// The abilities as bits.
  public let rawValue: Int

  /// Makes a set of abilities.
  ///
  /// - Parameter rawValue: The abilities as bits.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// What was stored is there again when the same location is opened again after closing.
  ///
  /// A store whose acknowledgement is `volatile` lacks it.
  public static let persistence = StoreAbilities(rawValue: 1 << 0)

  /// A write that has returned outlives a store that was not closed.
  ///
  /// A store whose acknowledgement is `volatile` or `accepted` lacks it.
  public static let acknowledgedPersistence = StoreAbilities(rawValue: 1 << 1)

  /// Values are encoded, so that one may be refused, or found damaged.
  ///
  /// A store that keeps the values themselves lacks it.
  public static let encoding = StoreAbilities(rawValue: 1 << 2)

  /// A write refuses at once a value that cannot be encoded.
  ///
  /// A store that acknowledges a write before it encodes the value lacks it.
  public static let immediateRefusal = StoreAbilities(rawValue: 1 << 3)

  /// Keys are listed and counted without decoding values.
  ///
  /// A store whose values tell whether an entry counts lacks it.
  public static let keysWithoutValues = StoreAbilities(rawValue: 1 << 4)

  /// The store can be opened for reading only.
  ///
  /// Opened with ``ConformanceLocation/access`` `readOnly`, it states that access in its information. A store that knows no
  /// access, or keeps nothing, lacks it.
  public static let readOnlyAccess = StoreAbilities(rawValue: 1 << 5)

  /// Another process can be started that opens the store.
  ///
  /// A suite without a `child` lacks it, and every store where there are no other processes, as on iOS.
  public static let otherProcesses = StoreAbilities(rawValue: 1 << 6)

  /// Every ability.
  public static let all: StoreAbilities = [
    .persistence, .acknowledgedPersistence, .encoding, .immediateRefusal, .keysWithoutValues, .readOnlyAccess,
    .otherProcesses,
  ]

  /// What each single ability means, for people to read.
  static let explanations: [(ability: StoreAbilities, text: String)] = [
    (.persistence, "keeps nothing beyond closing"),
    (.acknowledgedPersistence, "may lose writes that have returned when it is not closed"),
    (.encoding, "does not encode values"),
    (.immediateRefusal, "may acknowledge a value before it is encoded"),
    (.keysWithoutValues, "decodes values to list keys"),
    (.readOnlyAccess, "cannot be opened for reading only"),
    (.otherProcesses, "is not opened in another process: the suite was given no child"),
  ]
}
