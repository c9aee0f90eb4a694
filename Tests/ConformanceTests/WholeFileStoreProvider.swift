import Foundation
import Larder
import LarderFiles

struct WholeFileStoreProvider: StoreProvider {
  /// The part of the content that says which codec the file has.
  private struct Head: Decodable {
    var codec: String
  }

  var scheme: String { "whole" }
  var summary: String { "one file, rewritten for each change" }
  var codecName: String { "json" }

  // The durability in the options is ignored, because this store always synchronizes.
  func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) throws -> UntypedWholeFile {
    let files = try StoreFileConfiguration(url, options)
    let codecName = try files.reportingFileErrors(during: .open, message: "\(files.path) could not be read") {
      guard try files.fileSystem.attributes(at: files.path) != nil else {
        guard files.createsIfMissing else { throw files.error(.notFound, during: .open, "there is no such file") }
        return newCodecName ?? self.codecName
      }
      let bytes = try files.fileSystem.open(files.path, .read).readAll()
      do {
        return try JSONDecoder().decode(Head.self, from: Data(bytes)).codec
      } catch {
        throw files.error(.corrupted, during: .open, "\(files.path) is damaged", underlying: error)
      }
    }
    return UntypedWholeFile(path: files.path, access: files.access, codecName: codecName)
  }
}

/// A file whose type of values is not chosen yet.
struct UntypedWholeFile: UntypedStore {
  let path: String
  let access: StoreAccess
  let codecName: String

  func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await WholeFileStore(path: path, codec: codec, access: access))
  }
}
