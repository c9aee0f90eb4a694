import Foundation
import Larder
import LarderCompressedFile
import LarderJSON
import PeakMemory

/// Reads a document in one of several ways and prints the peak resident memory of the process, in bytes.
///
/// Each measurement is a process of its own, because a process does not return memory that it once had.
@main
enum OpenDocument {
  /// Ways to read a document.
  enum Way: String, CaseIterable {
    /// Not at all, to measure the program itself.
    case nothing
    /// By opening a `JSONFileStore`.
    case store
    /// By opening a `CompressedFileStore`, which reads the whole file and keeps the keys.
    case compressed
    /// By `Data(contentsOf:)`, without parsing it.
    case data
    /// By `JSONSerialization`.
    case serialization
    /// By `JSONDecoder`, as a dictionary of records.
    case decoder
  }

  /// The content of the document, for `JSONDecoder`.
  struct Document: Decodable {
    struct Record: Decodable {
      let number: Int
      let name: String
      let street: String
      let city: String
      let email: String
      let active: Bool
      let note: String
    }

    let larder: Int
    let entries: [String: Record]
  }

  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let way = Way(rawValue: arguments[1]) else {
      let ways = Way.allCases.map(\.rawValue).joined(separator: "|")
      FileHandle.standardError.write(Data("usage: OpenDocument \(ways) PATH\n".utf8))
      exit(64)
    }
    let url = URL(filePath: arguments[2])
    switch way {
    case .nothing:
      break
    case .store:
      let store = try await JSONFileStore<JSONText>(path: arguments[2], codec: .jsonText)
      try await store.close()
    case .compressed:
      let store = try await CompressedFileStore<JSONText>(path: arguments[2], codec: .jsonText)
      try await store.close()
    case .data:
      try withExtendedLifetime(Data(contentsOf: url)) {}
    case .serialization:
      try withExtendedLifetime(JSONSerialization.jsonObject(with: Data(contentsOf: url))) {}
    case .decoder:
      try withExtendedLifetime(JSONDecoder().decode(Document.self, from: Data(contentsOf: url))) {}
    }
    print(try PeakMemory.bytes())
  }
}
