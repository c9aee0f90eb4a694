import Larder
import LarderFiles

/// A coder that encodes items as payloads and decodes them.
struct QueueCoder<Element: Sendable>: Sendable {
  /// The error of a payload whose checksum does not match.
  struct DamagedPayload: RedactedError, CustomStringConvertible {
    var description: String { "its bytes do not have the checksum that was written with them" }
  }

  private let coder: ValueCoder<Element>

  /// The codec for the comparison with the record of the queue.
  var codecRecord: CodecRecord { coder.codecRecord }

  init(codec: some Codec<Element>, store: String) {
    coder = ValueCoder(codec: codec, store: store, maximumSize: QueueFrame.maximumBodyLength - 1024)
  }

  /// Returns the payload of an item.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key that the caller gave, or `nil` if it will be generated.
  ///   - item: The item of the key that an update replaces. Defaults to `nil`.
  ///   - stored: The payload of that item. Defaults to `nil`.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with `encodingFailed` or `valueTooLarge`.
  func payload(
    of value: Element, forKey key: StoreKey?, replacing item: QueueItem? = nil, _ stored: ArraySlice<UInt8>? = nil,
    during operation: StoreOperation
  ) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try coder.append(
      value, forKey: key, replacing: stored, passesKey: item?.hasCallersKey ?? true, to: &bytes, during: operation)
    return bytes
  }

  /// Decodes the payload of an item.
  ///
  /// The codec learns the key if the caller gave it. A generated key was not known when the payload was encoded.
  ///
  /// - Parameters:
  ///   - payload: The payload; `nil` if it is damaged.
  ///   - item: The item.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with `corrupted` or `undecodable`, or the code of a `StoreErrorConvertible`.
  func value(
    of payload: ArraySlice<UInt8>?, _ item: QueueItem, during operation: StoreOperation
  ) throws(StoreError) -> Element {
    guard let payload else { throw coder.decodingError(DamagedPayload(), forKey: item.key, during: operation) }
    // The standard library's method does not pass on the type of the error.
    return try payload.withUnsafeBytes { bytes in
      Result { () throws(StoreError) in
        try coder.value(of: bytes, forKey: item.key, passesKey: item.hasCallersKey, during: operation)
      }
    }.get()
  }

  /// Returns the value of an item, or an error if it cannot be read or decoded.
  func result(
    of payload: Result<ArraySlice<UInt8>?, StoreError>, _ item: QueueItem, during operation: StoreOperation
  ) -> Result<Element, StoreError> {
    do throws(StoreError) {
      return .success(try value(of: try payload.get(), item, during: operation))
    } catch {
      return .failure(error)
    }
  }

  /// Decodes a leased item.
  ///
  /// - Parameters:
  ///   - leased: The item.
  ///   - payload: The payload, `nil` if it is damaged; or the error of reading it.
  func reading(
    of leased: LeasedItem, _ payload: Result<ArraySlice<UInt8>?, StoreError>
  ) -> Result<QueueDelivery<Element>, FailedDelivery> {
    let receipt = leased.receipt
    switch result(of: payload, leased.item, during: .receive) {
    case .success(let value):
      return .success(
        QueueDelivery(
          key: leased.item.key, value: value, receipt: receipt,
          enqueueDate: .init(microsecondsSince1970: leased.item.arrival),
          isSuspect: leased.isSuspect))
    case .failure(let error):
      let reason: FailedDelivery.Reason =
        switch payload {
        case .failure: .unreadable
        case .success(nil): .damaged
        case .success: error.isAboutProgram ? .deferred : .undecodable
        }
      return .failure(FailedDelivery(receipt: receipt, reason: reason, error: error))
    }
  }
}
