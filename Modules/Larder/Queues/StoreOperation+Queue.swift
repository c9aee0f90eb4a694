extension StoreOperation {
  /// ``DurableQueue/enqueue(_:)`` and its single form.
  public static let enqueue = StoreOperation(rawValue: "enqueue")
  /// ``DurableQueue/receive(max:lease:)``, and the methods built on it.
  public static let receive = StoreOperation(rawValue: "receive")
  /// ``DurableQueue/acknowledge(_:)-([DeliveryReceipt])`` and its single form.
  public static let acknowledge = StoreOperation(rawValue: "acknowledge")
  /// ``DurableQueue/release(_:after:countsAsAttempt:)-([DeliveryReceipt],_,_)`` and its single form.
  public static let release = StoreOperation(rawValue: "release")
  /// ``DurableQueue/extend(_:lease:)-([DeliveryReceipt],_)`` and its single form.
  public static let extend = StoreOperation(rawValue: "extend")
  /// ``DurableQueue/peek(max:)``.
  public static let peek = StoreOperation(rawValue: "peek")
  /// ``DurableQueue/deadLetters(limit:after:)``.
  public static let deadLetters = StoreOperation(rawValue: "deadLetters")
  /// ``DurableQueue/requeue(_:)`` and ``DurableQueue/requeueDeadLetters()``.
  public static let requeue = StoreOperation(rawValue: "requeue")
  /// ``DurableQueue/purgeDeadLetters(_:)`` and ``DurableQueue/purgeDeadLetters()``.
  public static let purgeDeadLetters = StoreOperation(rawValue: "purgeDeadLetters")
  /// ``PausableQueue/pause()``.
  public static let pause = StoreOperation(rawValue: "pause")
  /// ``PausableQueue/resume()``.
  public static let resume = StoreOperation(rawValue: "resume")
  /// ``PausableQueue/isPaused()``.
  public static let isPaused = StoreOperation(rawValue: "isPaused")
  /// ``InspectableQueue/leasedItems(limit:after:)``.
  public static let leasedItems = StoreOperation(rawValue: "leasedItems")
  /// ``InspectableQueue/groups(limit:after:)``.
  public static let groups = StoreOperation(rawValue: "groups")
  /// ``InspectableQueue/schedules(limit:after:)``.
  public static let schedules = StoreOperation(rawValue: "schedules")
}

extension StoreError.Code {
  /// A receipt does not belong to a running lease: the lease has ended, or the item was replaced or removed.
  public static let staleReceipt = StoreError.Code(rawValue: "staleReceipt")
}
