import Larder
import LarderExpiry
import StoreAccess

/// An open store whose values are moved to another one, as JSON or as they are stored.
enum MovableStore {
  case json(OpenedStore)
  case stored(StoredStore)

  /// Opens a store with its values as they are stored if they are encrypted and the caller gave no keys, and as JSON
  /// otherwise.
  ///
  /// - Parameter found: The store.
  /// - Throws: The errors of the store.
  init(decodingIfPossible found: FoundStore) async throws {
    self = found.isLocked ? .stored(try await StoredStore(found)) : .json(try await OpenedStore(found))
  }

  /// Returns the end of a summary, which says what was not examined.
  ///
  /// - Parameter isLocked: A Boolean value that indicates whether the values are encrypted, and the caller gave no
  ///   keys.
  static func remark(isLocked: Bool) -> String {
    isLocked ? "; the values are encrypted and were not examined" : ""
  }

  /// The name of the codec of the values.
  var codecName: String {
    switch self {
    case .json(let store): store.codecName
    case .stored(let store): "\(store.codecName)"
    }
  }

  /// A Boolean value that indicates whether the values have deadlines that can be read.
  var expires: Bool {
    switch self {
    case .json(let store): store.expiry != nil
    case .stored(let store): if case .expiring = store.entries { true } else { false }
    }
  }

  /// Returns the number of entries in a range, including expired ones.
  func storedCount(in range: KeyRange) async throws -> Int {
    switch self {
    case .json(let store): try await store.storedCount(in: range)
    case .stored(let store):
      switch store.entries {
      case .plain(let entries): try await entries.count(in: range)
      case .expiring(let entries): try await entries.count(in: range)
      }
    }
  }

  /// Reads the first entries of a range.
  ///
  /// - Parameters:
  ///   - range: The range.
  ///   - limit: The maximum number of entries.
  ///   - codec: The codec that must be able to encode the values; `nil` for any.
  /// - Throws: The errors of the store; ``StoreError`` with `encodingFailed`, or the code of the codec's error, for a value
  ///   that cannot be encoded.
  func checkFirst(in range: KeyRange, limit: Int, encodableBy codec: (any Codec<JSONText>)?) async throws {
    switch self {
    case .json(let store):
      let entries: [StoreEntry<JSONText>] =
        if let expiry = store.expiry {
          try await expiry.base.entries(in: range, limit: limit, order: .ascending).map {
            StoreEntry(key: $0.key, value: $0.value.value)
          }
        } else {
          try await store.present.entries(in: range, limit: limit, order: .ascending)
        }
      guard let codec else { return }
      for entry in entries {
        var bytes: [UInt8] = []
        do {
          try codec.encode(entry.value, into: &bytes)
        } catch {
          throw StoreError(
            (error as? any StoreErrorConvertible)?.storeErrorCode ?? .encodingFailed, during: .apply,
            store: store.present.information.name, key: entry.key,
            message: "the value could not be encoded with the codec \(codec.name)", underlying: error)
        }
      }
    case .stored(let store):
      switch store.entries {
      case .plain(let entries): _ = try await entries.entries(in: range, limit: limit, order: .ascending)
      case .expiring(let entries): _ = try await entries.entries(in: range, limit: limit, order: .ascending)
      }
    }
  }

  /// Reads and checks the whole store, including the values that can be decoded.
  func verify() async throws -> VerificationReport {
    switch self {
    case .json(let store): try await store.present.verify()
    case .stored(let store):
      switch store.entries {
      case .plain(let entries): try await entries.verify()
      case .expiring(let entries): try await entries.verify()
      }
    }
  }

  /// Closes the store.
  func close() async throws {
    switch self {
    case .json(let store): try await store.present.close()
    case .stored(let store): try await store.close()
    }
  }
}
