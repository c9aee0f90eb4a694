/// A type that opens stores of one kind by URL.
///
/// Each module with stores has a provider that you pass to a ``StoreRegistry``.
public protocol StoreProvider: Sendable {
  /// The type of an open store whose type of values is not chosen yet.
  associatedtype Untyped: UntypedStore

  /// The scheme of the URLs, in lower case, such as `json`.
  var scheme: String { get }

  /// A description of the stores for people, in one line.
  var summary: String { get }

  /// The name of the default codec of new stores, such as `json`.
  var codecName: String { get }

  /// A Boolean value that indicates whether the stores of the provider are queues.
  ///
  /// Of the layers of a configured stack, only those fit a queue that say so. Defaults to `false`.
  var opensQueues: Bool { get }

  /// Opens a store before the type of its values is chosen.
  ///
  /// - Parameters:
  ///   - url: The URL of the store, whose scheme is ``scheme``.
  ///   - options: The options for opening the store.
  ///   - newCodecName: The name of the codec that a new store records, or `nil` for ``codecName``. It is also the codec of a
  ///     store that another program created without a record.
  /// - Throws: ``StoreError`` with `notFound` if the store does not exist and `options` do not allow it to be created;
  ///   `invalidArgument` with an ``UnrecordedCodecError`` if the store records no codec, its values can have any, and
  ///   `newCodecName` is `nil`; other codes that opening a store of this kind throws.
  func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) async throws -> Untyped
}

extension StoreProvider {
  /// `false`.
  public var opensQueues: Bool { false }
}

/// The error of a store that another program created and that records no codec, if you did not choose one.
///
/// It is the ``StoreError/underlying`` error of ``StoreProvider/open(_:options:newCodecName:)``. Pass the name of the
/// codec of its values. A default could be wrong, and would be recorded, so programs that read the values otherwise
/// refuse the store.
public struct UnrecordedCodecError: RedactedError, Hashable, CustomStringConvertible {
  /// Creates an error.
  public init() {}

  /// A text that says that there is no record.
  public var description: String { "records no codec" }
}

extension StoreError {
  /// Returns the error of a store that records no codec.
  ///
  /// - Parameters:
  ///   - container: The part of the database that has the entries, such as "table".
  ///   - store: The name of the store.
  public static func unrecordedCodec(of container: String, store: String) -> StoreError {
    let cause = UnrecordedCodecError()
    return StoreError(
      .invalidArgument, during: .open, store: store,
      message:
        "the \(container) was created by another program and \(cause); choose the codec of its values, such as raw",
      underlying: cause)
  }
}

/// An open store whose type of values is not chosen yet.
///
/// ```swift
/// let untyped = try await registry.open(StoreURL("json:users.json"))
/// let users =
///   if untyped.codecName == "cbor" {
///     try await untyped.typed(codec: .cbor(User.self))
///   } else {
///     try await untyped.typed(codec: .json(User.self))
///   }
/// ```
///
/// If you choose no type, the store is closed when you release the last reference to it.
public protocol UntypedStore: Sendable {
  /// The name of the codec that the store was written with.
  ///
  /// For a store that records no codec, it is the name that a new store would record.
  var codecName: String { get }

  /// Returns the store as a store of values of one type.
  ///
  /// - Parameter codec: The codec of the values.
  /// - Throws: ``StoreError`` with `versionMismatch` if the codec has a different name than the store's codec, and
  ///   does not adopt that name; see ``Codec/adoptedNames``. The store is left unchanged.
  func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value>
}

/// The options for opening a store by URL.
///
/// ```swift
/// let options = StoreOptions(createsIfMissing: false, access: .readOnly)
/// let users = try await registry.open("json:users.json", codec: .json(User.self), options: options)
/// ```
public struct StoreOptions: Sendable, Hashable {
  /// A Boolean value that indicates whether a missing store is created.
  ///
  /// If not, opening a missing store throws ``StoreError/Code/notFound``.
  public var createsIfMissing: Bool

  /// The durability of writes.
  public var durability: Durability.File

  /// The access of the store to its data.
  ///
  /// With any access other than ``StoreAccess/readWrite``, nothing is created.
  public var access: StoreAccess

  /// Creates options.
  ///
  /// - Parameters:
  ///   - createsIfMissing: A Boolean value that indicates whether to create the store if it is missing. Defaults to `true`.
  ///   - durability: The durability of a write when it returns. Defaults to ``Durability/File/synced``.
  ///   - access: The access of the store to its data. Defaults to ``StoreAccess/readWrite``.
  public init(createsIfMissing: Bool = true, durability: Durability.File = .synced, access: StoreAccess = .readWrite) {
    self.createsIfMissing = createsIfMissing
    self.durability = durability
    self.access = access
  }
}
