public import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Opens ``JSONFileStore``s for ``StoreRegistry``, for URLs like `json:users.json`.
public struct JSONFileStoreProvider: StoreProvider {
  /// Makes the provider.
  public init() {}

  /// `json`.
  public var scheme: String { "json" }

  /// What the stores are, in one line.
  public var summary: String { "one readable JSON document at a path" }

  /// The name of the codec that the document states.
  ///
  /// - Throws: ``StoreError``: `notPermitted`; `ioFailed`. A document that cannot be read is for opening to refuse.
  public func codecName(of url: StoreURL) async throws -> String? {
    try await DispatchQueueExecutor(label: "Larder.JSONFileStoreProvider").run {
      do throws(FileError) {
        let file = try POSIXFileSystem().open(url.location, .read)
        let text = try file.readAll()
        try file.close()
        do {
          return try JSONDocument(text).codecName
        } catch {
          return nil
        }
      } catch {
        if error.errorNumber == ENOENT || error.errorNumber == EISDIR { return nil }
        throw StoreError(error, during: .open, store: url.description, message: "the document cannot be read")
      }
    }
  }

  /// Opens the store whose document is at the path behind the scheme.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the path is empty; what opening a ``JSONFileStore`` throws.
  public func open<Value: Sendable>(
    _ url: StoreURL, codec: any Codec<Value>, options: StoreOptions
  ) async throws -> AnyDataStore<Value> {
    guard !url.location.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.description, message: "the path of the document is missing")
    }
    return AnyDataStore(
      try await JSONFileStore(
        path: url.location, codec: codec, durability: options.durability, createsIfMissing: options.createsIfMissing))
  }
}
