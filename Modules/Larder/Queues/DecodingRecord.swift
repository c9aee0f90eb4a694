extension StoreError {
  /// A Boolean value that indicates whether a value could not be decoded because the program lacks something, such as a
  /// dictionary or a key.
  ///
  /// A codec reports this with a code of its own. The value itself may be sound.
  public var isAboutProgram: Bool { underlying is any StoreErrorConvertible && code != .corrupted }
}

/// A record of whether items can be decoded, which distinguishes a bad item from a program that cannot decode any.
///
/// An open queue has one, for its ``ReceiveLoop``. A program with the wrong type must not turn items into dead letters that another program can read. Items are
/// identified by their sequence numbers.
public final class DecodingRecord: Sendable {
  private struct State: Sendable {
    var hasDecoded = false
    var failures = 0
    var deferred: Set<UInt128> = []
  }

  /// The number of items that may fail before receiving stops, if no item has been decoded.
  public static var failureLimit: Int { 3 }

  private let state = Locked(State())

  /// Creates a record of no items.
  public init() {}

  /// A Boolean value that indicates whether an item has been decoded since the queue was opened, so failures count.
  public var hasDecoded: Bool { state.withLock { $0.hasDecoded } }

  /// The sequence numbers of the items that your program lacks something to decode.
  ///
  /// They are tried again only if no other item is due, so they do not block other items.
  public var deferred: Set<UInt128> { state.withLock { $0.deferred } }

  /// Records that an item was decoded, or that your program lacks something to decode it.
  ///
  /// If a deferred item was decoded, the program no longer lacks anything, and all items are due in the order of arrival
  /// again.
  ///
  /// - Parameter reading: The item, or its failure.
  public func note<Element>(_ reading: Result<QueueDelivery<Element>, FailedDelivery>) {
    state.withLock { state in
      switch reading {
      case .success(let delivery):
        state.hasDecoded = true
        if state.deferred.contains(delivery.receipt.sequence) { state.deferred = [] }
      case .failure(let failure) where failure.reason == .deferred: state.deferred.insert(failure.receipt.sequence)
      case .failure: break
      }
    }
  }

  /// Records that an item could not be decoded.
  ///
  /// - Returns: A Boolean value that indicates whether receiving must stop, because several items failed and none has
  ///   ever been decoded.
  public func noteFailure() -> Bool {
    state.withLock { state in
      guard !state.hasDecoded else { return false }
      state.failures += 1
      guard state.failures >= DecodingRecord.failureLimit else { return false }
      state.failures = 0
      return true
    }
  }
}
