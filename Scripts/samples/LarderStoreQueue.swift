import LarderLMDB

var bytes: LMDBStore<[UInt8]> { standIn() }
var base: LMDBStore<[UInt8]> { standIn() }
var outbox: StoreQueue<LMDBStore<[UInt8]>, Event> { standIn() }
var placed: StoreQueue<LMDBStore<[UInt8]>, OrderPlaced> { standIn() }
var orders: TypedView<LMDBStore<[UInt8]>, Order> { standIn() }
var totals: TypedView<LMDBStore<[UInt8]>, Int> { standIn() }
var queue: StoreQueue<LMDBStore<[UInt8]>, Report> { standIn() }
var delivery: QueueDelivery<OrderPlaced> { standIn() }
var reminder: Event { standIn() }
var midnight: Date { standIn() }
var report: QueueSchedule<Report> { standIn() }
var environment: LMDBEnvironment { standIn() }
var database: LMDBEnvironment { standIn() }

extension StoreQueue_EnqueuingSamples {
  static var bytes: [UInt8] { standIn() }
}

extension StoreQueueSamples {
  static var orders: LMDBStore<Order> { standIn() }
  static var outbox: StoreQueue<LMDBStore<[UInt8]>, OrderPlaced> { standIn() }
}
