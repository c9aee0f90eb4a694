import Larder

extension CaseList where Store: DurableQueue {
  /// Creates the list of the cases about deliveries.
  init(ofQueue settings: SuiteSettings<Store>) {
    self.settings = settings
    begin(.queues, checking: .deliveries)
    addDeliveryCases()
    addReceiptCases()
    addOrderCases()
    addDeadLetterCases()
    addWaitingCases()
    addEntryCases()
    addInspectionCases()
    addQueueHistoryCases()
  }
}

extension Trial where Store: DurableQueue {
  /// The clock of the queue.
  var clock: ManualClock { QueueLocation(location).clock }

  /// Advances the clock, and lets the queue handle what has become due.
  func advance(by seconds: Int) {
    clock.advance(by: .seconds(seconds))
  }
}

extension DurableQueue where Value == SampleValue? {
  /// Receives items and returns their numbers.
  func receiveNumbers(max: Int = 1, lease: Int = 60) async throws -> [Int64] {
    try await receive(max: max, lease: .seconds(lease)).map(\.number)
  }

  /// Receives one item that must be there.
  func receiveOne(lease: Int = 60) async throws -> QueueDelivery<Value> {
    guard let delivery = try await receive(lease: .seconds(lease)) else {
      throw Mismatch(subject: "receiving one item", expected: "a delivery", got: "none")
    }
    return delivery
  }

  /// Enqueues numbered items in one call.
  func enqueue(numbers: [Int64]) async throws {
    try await enqueue(numbers.map { QueueInput(.number($0)) })
  }
}

extension QueueDelivery where Element == SampleValue? {
  /// The number of the item, or -1 if the value is `nil`.
  var number: Int64 { value?.integer ?? -1 }
}

extension SampleValue? {
  /// Returns a value with a number.
  static func number(_ number: Int64) -> SampleValue? { SampleValue(integer: number) }
}
