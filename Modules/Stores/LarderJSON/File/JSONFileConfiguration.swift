import Larder
import LarderFiles

/// How a ``JSONFile`` is opened, and how it names itself in errors.
struct JSONFileConfiguration: Sendable {
  /// The name of the store, in errors.
  var name: String
  var path: String
  var durability: Durability
  var createsIfMissing: Bool
  /// Whether the folder of the document is made where it is missing.
  var createsFolder: Bool
  var fileSystem: any FileSystem

  /// An error of the store.
  func error(
    _ code: StoreError.Code, during operation: StoreOperation, key: StoreKey? = nil, _ message: String,
    underlying: (any Error)? = nil, isRetryable: Bool = false
  ) -> StoreError {
    StoreError(
      code, during: operation, store: name, key: key, message: message, underlying: underlying, isRetryable: isRetryable
    )
  }

  /// Refuses what cannot be the document of a store.
  func checkKind(_ attributes: FileAttributes, of path: String) throws {
    guard attributes.kind == .file else {
      throw error(.unrecognizedFormat, during: .open, "\(path) is not a file")
    }
    guard attributes.linkCount <= 1 else {
      throw error(
        .unsupported, during: .open,
        "\(path) has \(attributes.linkCount) names (hard links), and each would have a lock of its own; leave it only one"
      )
    }
  }

  /// Refuses a file that was written with another codec.
  func checkCodec(_ found: String, of path: String, is codecName: String) throws {
    guard found == codecName else {
      throw error(
        .versionMismatch, during: .open,
        "\(path) was written with the codec \(found), not with \(codecName); open it with that one")
    }
  }

  /// Runs work on the files, and makes an error of the store of any that the file system throws.
  func reportingFileErrors<Result>(
    during operation: StoreOperation, message: String, outcome: StoreError.Outcome = .nothingChanged,
    _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as FileError {
      throw StoreError(error, during: operation, store: name, message: message, outcome: outcome)
    }
  }
}
