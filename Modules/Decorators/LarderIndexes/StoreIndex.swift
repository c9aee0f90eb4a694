public import Larder

/// A definition of an index, with which an ``IndexedStore`` finds entries by properties of their values.
///
/// ```swift
/// let byTag = StoreIndex<Note>("tag") { _, note in note.tags.map { [$0, note.created] } }
/// let bySlug = StoreIndex<Note>("slug", isUnique: true) { _, note in [[note.slug]] }
/// ```
///
/// The closure returns any number of index keys for an entry. Each index key is a list of components, and
/// index keys sort by their first component, then by their second, and so on. In the example, the notes with a tag are
/// therefore adjacent and sorted by date.
///
/// The closure must depend only on its arguments. If you change what it returns, increment ``version``, so
/// ``IndexedStore/rebuildIndexes(fromScratch:)`` replaces the old index entries. Otherwise, they remain, and
/// ``IndexedStore/verifyIndexes()`` reports them.
public struct StoreIndex<Value: Sendable>: Sendable {
  /// The name of the index.
  ///
  /// It must be unique within the store.
  public let name: String

  /// The version of the definition.
  public let version: Int

  /// A Boolean value that indicates whether no two entries may have the same index key.
  public let isUnique: Bool

  /// Returns the index keys of an entry.
  let keys: @Sendable (StoreKey, Value) -> [[any KeyComponentConvertible]]

  /// Creates a definition of an index.
  ///
  /// ```swift
  /// let byTitle = StoreIndex<Note>("title", version: 2) { _, note in [[note.title.lowercased()]] }
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name. It appears in errors and reports, so it must not contain a secret.
  ///   - version: The version of the definition. Increment it when `keys` changes. Defaults to 1.
  ///   - isUnique: A Boolean value that indicates whether no two entries may have the same index key. A write that
  ///     would violate this throws `notUnique`. Defaults to `false`.
  ///   - keys: A closure that returns the index keys of an entry. Each one is a list of components, the most significant
  ///     one first. An index key that occurs twice counts once. The closure must not call the store.
  public init(
    _ name: String, version: Int = 1, isUnique: Bool = false,
    keys: @escaping @Sendable (_ key: StoreKey, _ value: Value) -> [[any KeyComponentConvertible]]
  ) {
    self.name = name
    self.version = version
    self.isUnique = isUnique
    self.keys = keys
  }
}

extension StoreError.Code {
  /// A write would give two entries the same key of a unique index.
  public static let notUnique = StoreError.Code(rawValue: "notUnique")

  /// An index is new or changed, and is not complete until it has been rebuilt.
  public static let indexIncomplete = StoreError.Code(rawValue: "indexIncomplete")
}

extension StoreOperation {
  /// Rebuilding indexes; see ``IndexedStore/rebuildIndexes(fromScratch:)``.
  public static let rebuildIndexes = StoreOperation(rawValue: "rebuildIndexes")
}
