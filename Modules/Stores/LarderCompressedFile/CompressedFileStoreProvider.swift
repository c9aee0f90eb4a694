#if Compression
public import Larder
public import LarderFiles

/// A provider that opens ``CompressedFileStore``s for `StoreRegistry`, from URLs such as `compressed:users.gz`.
///
/// ```swift
/// let registry = StoreRegistry(providers: [CompressedFileStoreProvider()])
/// let words = try await registry.open("compressed:words.gz", codec: .json([String].self))
/// ```
public struct CompressedFileStoreProvider: StoreProvider {
  private let findsPossiblyOlder: Bool

  /// Creates the provider.
  ///
  /// - Parameter findsPossiblyOlder: A Boolean value that indicates whether a damaged store also has the entries that
  ///   unknown changes may have replaced or removed, as far as they are readable; see
  ///   ``DamagedBlockError/hasUnknownChanges``. Only for salvaging: such a store must be opened with an access other
  ///   than `StoreAccess.readWrite`. Defaults to `false`.
  public init(findsPossiblyOlder: Bool = false) {
    self.findsPossiblyOlder = findsPossiblyOlder
  }

  /// The URL scheme `compressed`.
  public var scheme: String { "compressed" }

  /// A description of the stores, in one line.
  public var summary: String { "one compressed file at a path, which zcat reads" }

  /// The default codec of new stores, `json`.
  public var codecName: String { "json" }

  /// Opens the store at the path of a URL.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the path is empty, or if possibly older entries are to be found and the store
  ///   may write; the errors of opening a ``CompressedFileStore``.
  public func open(
    _ url: StoreURL, options: StoreOptions, newCodecName: String?
  ) async throws -> some UntypedStore {
    let configuration = try StoreFileConfiguration(url, options)
    guard !findsPossiblyOlder || options.access != .readWrite else {
      throw StoreError(
        .invalidArgument, during: .open, store: configuration.name,
        message: "entries that may be older can only be read; open the store with the access readOnly or immutable")
    }
    return try await UntypedCompressedFile(
      configuration, cacheSize: CompressedFileStore<Never>.defaultCacheSize, newCodecName: newCodecName ?? codecName,
      findsPossiblyOlder: findsPossiblyOlder)
  }

  /// Returns the files of the store that a URL names, whether or not they exist.
  ///
  /// - Parameter url: The URL, such as `compressed:users.json.gz`.
  public func files(of url: StoreURL) -> StoreFileSet { CompressedFile.files(at: url.location) }
}

/// An open compressed file whose type of values is not chosen yet.
struct UntypedCompressedFile: UntypedStore {
  let contents = SharedContent(CompressedFileContent())
  let writer: FileWriter<CompressedFile>
  let codecName: String
  let owner = FileOwner()

  /// Opens the file; see ``CompressedFileStore``.
  init(
    _ configuration: StoreFileConfiguration, cacheSize: Int, newCodecName: String, findsPossiblyOlder: Bool = false
  ) async throws {
    let contents = contents
    let isAbandoned = { @Sendable [weak owner] in owner == nil }
    writer = try await FileWriter(label: "Larder.CompressedFileStore", configuration, content: contents) {
      try CompressedFile.open(
        configuration, contents: contents, cacheSize: cacheSize, newCodecName: newCodecName,
        findsPossiblyOlder: findsPossiblyOlder, isAbandoned: isAbandoned)
    }
    codecName = await writer.file.codecName
  }

  func typed<Value: Sendable>(codec: some Codec<Value>) throws -> AnyDataStore<Value> {
    AnyDataStore(try CompressedFileStore(self, codec: codec))
  }
}

/// An object that exists while a store uses a file.
///
/// When it is deallocated, a running compaction is useless and stops.
final class FileOwner: Sendable {}
#endif
