public import Larder

extension StoreOperation {
  /// ``QueueStore/enqueue(_:id:delay:)`` and its batch form.
  public static let enqueue = StoreOperation(rawValue: "enqueue")
  /// ``QueueStore/receive(max:lease:)``, and the methods built on it.
  public static let receive = StoreOperation(rawValue: "receive")
  /// ``QueueStore/acknowledge(_:)-(DeliveryReceipt)`` and its batch form.
  public static let acknowledge = StoreOperation(rawValue: "acknowledge")
  /// ``QueueStore/release(_:after:countsAsAttempt:)-(DeliveryReceipt,_,_)`` and its batch form.
  public static let release = StoreOperation(rawValue: "release")
  /// ``QueueStore/extend(_:lease:)-(DeliveryReceipt,_)`` and its batch form.
  public static let extend = StoreOperation(rawValue: "extend")
  /// ``QueueStore/peek(max:)``.
  public static let peek = StoreOperation(rawValue: "peek")
  /// ``QueueStore/deadLetters(limit:after:)``.
  public static let deadLetters = StoreOperation(rawValue: "deadLetters")
  /// ``QueueStore/requeue(_:)`` and ``QueueStore/requeueDeadLetters()``.
  public static let requeue = StoreOperation(rawValue: "requeue")
  /// ``QueueStore/purgeDeadLetters(_:)`` and ``QueueStore/purgeDeadLetters()``.
  public static let purgeDeadLetters = StoreOperation(rawValue: "purgeDeadLetters")
}

extension StoreError.Code {
  /// A receipt does not belong to a running lease: the lease has ended, or the item was replaced or removed.
  public static let staleReceipt = StoreError.Code(rawValue: "staleReceipt")
}
