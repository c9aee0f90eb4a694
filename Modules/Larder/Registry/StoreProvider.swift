/// A type that opens stores of one kind by URL.
///
/// Each module with stores has a provider, which you pass to a ``StoreRegistry``.
public protocol StoreProvider: Sendable {
  /// The scheme of the URLs, in lower case, such as `json`.
  var scheme: String { get }

  /// A description of the stores for people, in one line.
  var summary: String { get }

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - url: The URL of the store, whose scheme is ``scheme``.
  ///   - options: The options for opening the store.
  ///   - codec: A closure that returns the codec for the values. It receives the name of the codec that the store was
  ///     written with. If the store is new or does not record a name, the closure receives the name of the default
  ///     codec of this kind of store. The provider calls the closure once, or never if the store does not encode its
  ///     values.
  /// - Throws: ``StoreError`` with `notFound` if the store does not exist and `options` do not allow it to be created;
  ///   `versionMismatch` if the codec has a different name than the store's codec; other codes that opening a store of
  ///   this kind throws. The error that `codec` throws.
  func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value>
}

/// The options for opening a store by URL.
public struct StoreOptions: Sendable, Hashable {
  /// Whether a missing store is created.
  ///
  /// If not, opening a missing store throws ``StoreError/Code/notFound``.
  public var createsIfMissing: Bool

  /// The durability of writes.
  public var durability: FileDurability

  /// Whether the store may write.
  ///
  /// With any access other than ``StoreAccess/readWrite``, nothing is created.
  public var access: StoreAccess

  /// Creates options.
  ///
  /// - Parameters:
  ///   - createsIfMissing: Whether a missing store is created. Defaults to `true`.
  ///   - durability: The durability of writes. Defaults to ``FileDurability/synced``.
  ///   - access: Whether the store may write. Defaults to ``StoreAccess/readWrite``.
  public init(createsIfMissing: Bool = true, durability: FileDurability = .synced, access: StoreAccess = .readWrite) {
    self.createsIfMissing = createsIfMissing
    self.durability = durability
    self.access = access
  }
}
