// snippet.opening-it-by-url
import Foundation
import Larder
import LarderFiles

/// Opens stores in one file by URLs such as `whole:notes.json`.
public struct WholeFileStoreProvider: StoreProvider {
  /// The part of the content that says which codec the file has.
  private struct Head: Decodable {
    var codec: String
  }

  public init() {}

  public var scheme: String { "whole" }
  public var summary: String { "one file, rewritten for each change" }
  public var codecName: String { "json" }

  // The durability in the options is ignored, because this store always synchronizes.
  public func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) throws -> UntypedWholeFile {
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
public struct UntypedWholeFile: UntypedStore {
  let path: String
  let access: StoreAccess
  public let codecName: String

  public func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await WholeFileStore(path: path, codec: codec, access: access))
  }
}
// snippet.end
