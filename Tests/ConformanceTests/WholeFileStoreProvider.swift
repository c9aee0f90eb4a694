import Larder
import LarderFiles

struct WholeFileStoreProvider: StoreProvider {
  var scheme: String { "whole" }
  var summary: String { "one file, rewritten for each change" }

  // The durability in the options is ignored, because this store always synchronizes.
  func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    guard try options.createsIfMissing || POSIXFileSystem().attributes(at: url.location) != nil else {
      throw StoreError(.notFound, during: .open, store: url.description, message: "there is no such file")
    }
    return AnyDataStore(try await WholeFileStore(path: url.location, codec: codec("json"), access: options.access))
  }
}
