import Larder
import LarderFiles
import Synchronization

/// A coder that encodes items as payloads and decodes them.
struct QueueCoder<Element: Sendable>: Sendable {
  /// The error of a payload whose checksum does not match.
  struct DamagedPayload: ValueFreeError, CustomStringConvertible {
    var description: String { "its bytes do not have the checksum that was written with them" }
  }

  private let coder: ValueCoder<Element>

  init(codec: some Codec<Element>, store: String) {
    // The key of most items is known only after they were encoded.
    coder = ValueCoder(
      codec: codec, store: store, maximumSize: QueueFrame.maximumBodyLength - 1024, passesKeys: false)
  }

  /// Returns the payload of an item.
  ///
  /// - Throws: ``StoreError`` with `encodingFailed` or `valueTooLarge`.
  func payload(of value: Element, forKey key: StoreKey?, during operation: StoreOperation) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try coder.append(value, forKey: key, to: &bytes, during: operation)
    return bytes
  }

  /// Decodes the item of a payload.
  ///
  /// - Parameters:
  ///   - payload: The payload; `nil` if it is damaged.
  ///   - key: The key of the item.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with `corrupted` or `undecodable`, or the code of a `StoreErrorConvertible`.
  func value(
    of payload: ArraySlice<UInt8>?, forKey key: StoreKey, during operation: StoreOperation
  ) throws(StoreError) -> Element {
    guard let payload else { throw coder.decodingError(DamagedPayload(), forKey: key, during: operation) }
    // The standard library's method does not pass on the type of the error.
    return try payload.withUnsafeBytes { bytes in
      Result { () throws(StoreError) in try coder.value(of: bytes, forKey: key, during: operation) }
    }.get()
  }

  /// Returns the item of a payload, or an error if it cannot be read or decoded.
  func result(
    of payload: Result<ArraySlice<UInt8>?, StoreError>, forKey key: StoreKey, during operation: StoreOperation
  ) -> Result<Element, StoreError> {
    do throws(StoreError) {
      return .success(try value(of: try payload.get(), forKey: key, during: operation))
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
  ) -> Result<Delivery<Element>, FailedDelivery> {
    let (key, receipt) = (leased.item.key, leased.receipt)
    switch result(of: payload, forKey: key, during: .receive) {
    case .success(let value): return .success(Delivery(key: key, value: value, receipt: receipt))
    case .failure(let error):
      let reason: DeliveryFailure =
        switch payload {
        case .failure: .unreadable
        case .success(nil): .damaged
        case .success: error.isAboutProgram ? .refused : .undecodable
        }
      return .failure(FailedDelivery(receipt: receipt, reason: reason, error: error))
    }
  }
}

/// A leased item that cannot be delivered.
struct FailedDelivery: Error {
  var receipt: DeliveryReceipt
  var reason: DeliveryFailure
  var error: StoreError
}

extension StoreError {
  /// Whether a value could not be decoded because the program lacks something, such as a dictionary or a key.
  ///
  /// A codec reports this with a code of its own. The value itself may be sound.
  fileprivate var isAboutProgram: Bool { underlying is any StoreErrorConvertible && code != .corrupted }
}

/// A record of whether items can be decoded, which distinguishes a bad item from a program that cannot decode any.
///
/// A program with the wrong type must not turn items into dead letters that another program can read.
final class DecodingRecord: Sendable {
  private struct State: Sendable {
    var hasDecoded = false
    var failures = 0
  }

  /// The number of items that may fail before receiving stops, if none has been decoded.
  static let failureLimit = 3

  private let state = Mutex(State())

  /// Whether an item has been decoded since the queue was opened, so that failures count.
  var hasDecoded: Bool { state.withLock { $0.hasDecoded } }

  /// Records that an item was decoded.
  func noteSuccess() {
    state.withLock { $0.hasDecoded = true }
  }

  /// Records that an item could not be decoded.
  ///
  /// - Returns: Whether receiving must stop, because several items failed and none has ever been decoded.
  func noteFailure() -> Bool {
    state.withLock { state in
      guard !state.hasDecoded else { return false }
      state.failures += 1
      guard state.failures >= DecodingRecord.failureLimit else { return false }
      state.failures = 0
      return true
    }
  }
}
