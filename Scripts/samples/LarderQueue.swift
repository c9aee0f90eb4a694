import LarderCBOR

var queue: QueueStore<Event> { standIn() }
var outbox: QueueStore<Event> { standIn() }
var deliveries: [QueueDelivery<Event>] { standIn() }

func sendAll(_ events: [Event]) async throws {}
func sendEach(_ deliveries: [QueueDelivery<Event>]) async throws -> [QueueDelivery<Event>] { standIn() }
