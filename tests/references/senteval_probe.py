"""SentEval's classifier without a hidden layer, fit by fit, and its ways of choosing the penalty.

A linear layer with cross-entropy, followed by Adam with coupled weight decay on everything, in shuffled batches of 64.
An "epoch" is four passes. After each one, accuracy on held-out rows is looked at: the best state so far is kept, and at
the sixth epoch in total that is no better, the run ends. Numpy and torch start from seed 1111 at every fit.
"""

import copy

import numpy as np
import torch

SEED = 1111
GRID = (1e-5, 1e-4, 1e-3, 1e-2)


class Classifier:
    def __init__(self, dim, classes, l2, batch=64, tenacity=5, epoch_size=4, max_epoch=200):
        np.random.seed(SEED)
        torch.manual_seed(SEED)
        self.model = torch.nn.Linear(dim, classes)
        self.optimizer = torch.optim.Adam(self.model.parameters(), weight_decay=l2)
        self.batch, self.tenacity, self.epoch_size, self.max_epoch = batch, tenacity, epoch_size, max_epoch

    def fit(self, x, y, held=None):
        """Learn; without held-out rows (x, y), a random 5 % of the rows serve as such."""
        if held is None:
            order = np.random.permutation(len(x))
            cut = int(0.05 * len(x))
            held = x[order[:cut]], y[order[:cut]]
            x, y = x[order[cut:]], y[order[cut:]]
        x, y = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
        best, best_state, misses, epoch = -1.0, None, 0, 0
        while epoch <= self.max_epoch:
            for _ in range(self.epoch_size):
                self.one_pass(x, y)
            epoch += self.epoch_size
            accuracy = self.score(*held)
            if accuracy > best:
                best, best_state = accuracy, copy.deepcopy(self.model.state_dict())
            else:
                misses += 1
                if misses > self.tenacity:
                    break
        self.model.load_state_dict(best_state)
        return best

    def one_pass(self, x, y):
        order = torch.from_numpy(np.random.permutation(len(x)))
        for rows in order.split(self.batch):
            loss = torch.nn.functional.cross_entropy(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def predict(self, x):
        with torch.no_grad():
            return self.model(torch.as_tensor(x, dtype=torch.float32)).argmax(dim=1).numpy()

    def score(self, x, y):
        return float((self.predict(x) == y).mean())


def by_dev(x, y, dev, grid=GRID, **settings):
    """Choose the penalty on dev, and stop on dev when learning from train again."""
    dim, classes = x.shape[1], int(y.max()) + 1
    scores = [round(100 * Classifier(dim, classes, l2, **settings).fit(x, y, dev), 2) for l2 in grid]
    chosen = grid[int(np.argmax(scores))]
    final = Classifier(dim, classes, chosen, **settings)
    final.fit(x, y, dev)
    return final, chosen
