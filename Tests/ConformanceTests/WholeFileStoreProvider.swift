import Larder
import LarderFiles

struct WholeFileStoreProvider: StoreProvider {
  var scheme: String { "whole" }
  var summary: String { "one file, rewritten for each change" }
  var codecName: String { "json" }

  // The durability in the options is ignored, because this store always synchronizes.
  func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) throws -> UntypedWholeFile {
    guard try options.createsIfMissing || POSIXFileSystem().attributes(at: url.location) != nil else {
      throw StoreError(.notFound, during: .open, store: url.description, message: "there is no such file")
    }
    return UntypedWholeFile(path: url.location, access: options.access, codecName: newCodecName ?? codecName)
  }
}

/// A file whose type of values is not chosen yet.
struct UntypedWholeFile: UntypedStore {
  let path: String
  let access: StoreAccess
  let codecName: String

  // The file does not record the name of its codec, so any codec is accepted.
  func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await WholeFileStore(path: path, codec: codec, access: access))
  }
}
