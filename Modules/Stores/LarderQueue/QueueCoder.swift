import Larder
import LarderFiles

/// Turns items into the payloads that stand for them, and back.
struct QueueCoder<Element: Sendable>: Sendable {
  /// The payload of an item is not the one that was written.
  struct DamagedPayload: ValueFreeError, CustomStringConvertible {
    var description: String { "its bytes do not have the checksum that was written with them" }
  }

  private let codec: any Codec<Element>
  private let store: String

  init(codec: any Codec<Element>, store: String) {
    self.codec = codec
    self.store = store
  }

  /// The payload of an item.
  ///
  /// - Throws: ``StoreError`` with `encodingFailed` or `valueTooLarge`.
  func payload(of value: Element, forKey key: StoreKey?, during operation: StoreOperation) throws -> [UInt8] {
    var bytes: [UInt8] = []
    do {
      try codec.encode(value, into: &bytes)
    } catch {
      throw StoreError(
        .encodingFailed, during: operation, store: store, key: key, message: "the value could not be encoded",
        underlying: error)
    }
    guard bytes.count <= QueueFrame.maximumBodyLength - 1024 else {
      throw StoreError(
        .valueTooLarge, during: operation, store: store, key: key,
        message: "a value has at most \(QueueFrame.maximumBodyLength - 1024) bytes, this one has \(bytes.count)")
    }
    return bytes
  }

  /// The item of a payload.
  ///
  /// - Parameters:
  ///   - payload: The payload; `nil` if it is damaged.
  ///   - key: The key of the item.
  ///   - operation: What was asked for.
  /// - Throws: ``StoreError`` with `corrupted`.
  func value(
    of payload: ArraySlice<UInt8>?, forKey key: StoreKey, during operation: StoreOperation
  ) throws(StoreError) -> Element {
    do {
      guard let payload else { throw DamagedPayload() }
      return try payload.withUnsafeBytes { try codec.decode($0.bytes) }
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: store, key: key, message: "the value could not be decoded",
        underlying: error)
    }
  }

  /// The item of a payload, or the error with which it cannot be read or decoded.
  func result(
    of payload: Result<ArraySlice<UInt8>?, StoreError>, forKey key: StoreKey, during operation: StoreOperation
  ) -> Result<Element, StoreError> {
    do throws(StoreError) {
      return .success(try value(of: try payload.get(), forKey: key, during: operation))
    } catch {
      return .failure(error)
    }
  }

  /// Decodes an item that was leased.
  ///
  /// - Parameters:
  ///   - leased: The item.
  ///   - payload: Its payload, `nil` if it is damaged; or the error with which the disk refuses it.
  func reading(
    of leased: LeasedItem, _ payload: Result<ArraySlice<UInt8>?, StoreError>
  ) -> QueueStore<Element>.Reading {
    let (key, receipt) = (leased.item.key, leased.receipt)
    switch payload {
    case .failure(let error): return .bad(receipt, .unreadable, error)
    case .success(let bytes):
      switch result(of: payload, forKey: key, during: .receive) {
      case .success(let value): return .good(Delivery(key: key, value: value, receipt: receipt))
      case .failure(let error): return .bad(receipt, bytes == nil ? .damaged : .undecodable, error)
      }
    }
  }
}
