// The cheapest program there is: what remains is the cost of starting one.
int main() { return 0; }
